import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { test } from 'node:test'
import { REQUESTS_IN_FLIGHT_MAX } from '../../src/edge/http/connection-gate.ts'
import { exemptFromWriteStall } from '../../src/edge/http/write-stall.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { listenHttp } from '../harness/http/http-server.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { SlowReader } from '../harness/http/slow-reader.ts'

const IMPATIENT = { writeStallMs: 600, checkEveryMs: 20 }
/** More than the kernel holds for one connection on any machine. */
const LARGE = Buffer.alloc(64 * 1_024 * 1_024, 'x')
const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`

/** The server closes the connection after the response. */
const lastGet = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`

const listen = (serve: RequestListener) => listenHttp(serve, { timeouts: IMPATIENT })

test('serves a few pipelined requests per event loop tick, and responds to all in order', async () => {
  let inThisTurn = 0
  let mostInATurn = 0
  await using server = await listen((request, response) => {
    // The first of a turn schedules the end of the count, behind what else the turn serves.
    if (inThisTurn === 0) setImmediate(() => setImmediate(() => (inThisTurn = 0)))
    inThisTurn += 1
    mostInATurn = Math.max(mostInATurn, inThisTurn)
    response.end(request.url)
  })
  await using connection = new RawConnection(server.url)
  await using others = new AsyncDisposableStack()
  const paths = Array.from({ length: REQUESTS_IN_FLIGHT_MAX }, (_, nth) => `/${nth}`)
  const bytes = paths.map(get).join('')
  for (let nth = 0; nth < 9; nth += 1) others.use(new RawConnection(server.url)).send(bytes)
  connection.send(bytes)
  for (const path of paths) assert.equal((await connection.response()).body, path)
  // Sixteen of those that wait, and the first of each connection.
  assert(mostInATurn <= 2 * 16 + 10, `${mostInATurn} requests were served in one turn`)
})

test('serves no further pipelined requests while a client leaves its responses unread', async () => {
  let served = 0
  await using server = await listen((request, response) => {
    if (request.url === '/large') served += 1
    response.end(request.url === '/large' ? LARGE : 'small')
  })
  await using connection = new RawConnection(server.url).pause()
  connection.send(get('/large').repeat(50))
  await eventually(() => assert(served > 0))
  await using other = new RawConnection(server.url)
  for (let nth = 0; nth < 50; nth += 1) await other.send(get('/small')).response()
  assert.equal(served, 1)
})

test('resumes pipelined requests when the client reads its responses', async () => {
  const half = 'y'.repeat(600 * 1_024)
  // Behind a late first response, the others wait in memory.
  let respondFirst = () => {}
  let served = 0
  await using server = await listen((request, response) => {
    served += 1
    if (request.url === '/0') respondFirst = () => response.end('first')
    else response.end(half)
  })
  await using connection = new RawConnection(server.url)
  connection.send(Array.from({ length: 11 }, (_, nth) => get(`/${nth}`)).join(''))
  await using other = new RawConnection(server.url)
  for (let nth = 0; nth < 5; nth += 1) await other.send(get('/x')).response()
  assert.equal(served - 5, 3, 'the first, and two that reach a megabyte together')
  respondFirst()
  assert.equal((await connection.response()).body, 'first')
  for (let nth = 0; nth < 10; nth += 1) assert.equal((await connection.response()).body, half)
})

test('disconnects a client that reads nothing, but not one that is slow, waits, or downloads', async () => {
  let respondLate = () => {}
  const closed: (string | undefined)[] = []
  await using server = await listen((request, response) => {
    if (request.url === '/late') {
      respondLate = () => response.end('late')
      return
    }
    if (request.url === '/download') exemptFromWriteStall(response)
    response.once('close', () => closed.push(request.url))
    response.end(LARGE)
  })
  await using slow = new SlowReader(server.url, lastGet('/slow'))
  await using download = new SlowReader(server.url, lastGet('/download'))
  await using stalled = new SlowReader(server.url, lastGet('/stalled'))
  await using waiting = new RawConnection(server.url).send(get('/late'))
  await eventually(() => {
    slow.readSome()
    assert(closed.length > 0)
  })
  // The others were opened before it, so they would be gone by now.
  assert.deepEqual(closed, ['/stalled'])
  assert((await stalled.readAll()) < LARGE.length)
  assert((await slow.readAll()) > LARGE.length)
  assert((await download.readAll()) > LARGE.length)
  respondLate()
  assert.equal((await waiting.response()).body, 'late')
})
