import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { SlowReader } from '../harness/http/slow-reader.ts'
import { call } from '../harness/app/start-app.ts'
import { Target } from './target.ts'

const MB = 1e6
const RSS_BYTES_MAX = 800 * MB
const SENDERS = 20
const IS_LONG = process.env.FAULT_SECONDS !== undefined
const BODIES_PER_SENDER = IS_LONG ? 60 : 1
const UNREAD_PAGES = IS_LONG ? 800 : 100
const SLOW_BODIES = IS_LONG ? 1_500 : 300

const target = await Target.start()
after(() => target[Symbol.asyncDispose]())

test('clients that stop reading the API reference script do not grow the memory', async () => {
  const script = '/docs/js/scalar.js'
  assert.equal((await call(`${target.url}${script}`, 'GET')).status, 200)
  const { rssBytes: before } = await target.report()
  await using stack = new AsyncDisposableStack()
  const readers = Array.from({ length: 100 }, () =>
    stack.use(new SlowReader(target.url, `GET ${script} HTTP/1.1\r\nhost: x\r\n\r\n`)),
  )
  for (const reader of readers) reader.readSome(1)
  await Promise.all(readers.map(({ begun }) => begun))
  const { rssBytes } = await target.report()
  const grownMb = Math.round((rssBytes - before) / MB)
  assert(grownMb < 60, `100 connections hold ${grownMb} MB`)
})

test('many-keyed bodies, unread pages and slow connections together stay within 800 MB', async () => {
  const { hostname, port } = new URL(target.url)
  const { workspaceKey } = target.company
  const headers = { authorization: `Bearer ${workspaceKey}`, 'content-type': 'application/json' }
  const send = async (path: string, body: string) => {
    const response = await fetch(`${target.url}${path}`, { method: 'POST', headers, body })
    const text = await response.text()
    assert(response.status < 500 || response.status === 503, text)
    return response.status
  }
  const filler = { category: 'c', action: 'a', metadata: { text: 'x'.repeat(400) } }
  const events = Array.from({ length: 200 }, () => filler)
  assert.equal(await send('/v1/events/batch', JSON.stringify({ events })), 200)

  const sockets: Socket[] = []
  const open = (text: string) => {
    const socket = connect({ host: hostname, port: Number(port) })
    // The service may close the connection first.
    socket.on('error', () => {}).pause()
    socket.write(text)
    sockets.push(socket)
  }
  const common = `Host: annals\r\nAuthorization: Bearer ${workspaceKey}\r\n`
  const page = `GET /v1/events?limit=200 HTTP/1.1\r\n${common}\r\n`
  for (let nth = 0; nth < UNREAD_PAGES; nth += 1) open(page.repeat(3))
  const slow = `POST /v1/events HTTP/1.1\r\n${common}Content-Type: application/json\r\nContent-Length: 200000\r\n\r\n{`
  for (let nth = 0; nth < SLOW_BODIES; nth += 1) open(slow)
  const metadata = Object.fromEntries(Array.from({ length: 18_000 }, (_, nth) => [`k${nth}`, nth]))
  const body = JSON.stringify({ category: 'c', action: 'a', metadata })
  const sendMany = async () => {
    for (let nth = 0; nth < BODIES_PER_SENDER; nth += 1) {
      // A connection that the service closes to make room is fine here.
      await send('/v1/events', body).catch((error) => assert(error instanceof TypeError, error))
    }
  }
  await Promise.all(Array.from({ length: SENDERS }, sendMany))
  for (const socket of sockets) socket.destroy()

  const { rssBytesMax } = await target.report()
  assert(rssBytesMax <= RSS_BYTES_MAX, `${(rssBytesMax / MB).toFixed(0)} MB resident`)
})
