import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { listenHttp } from '../harness/http-server.ts'
import { RawConnection } from '../harness/raw-http.ts'

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`
/** More than the kernel holds for one connection on any machine. */
const LARGE = Buffer.alloc(64 * 1_024 * 1_024, 'x')

test('closes the connection that has been idle longest for a new one', async () => {
  await using server = await listenHttp((_request, response) => response.end('ok'), {
    connectionsMax: 3,
  })
  await using unfinished = new RawConnection(server.url)
  unfinished.send('GET / HTTP/1.1\r\nhost: x\r\n')
  await eventually(() => assert.equal(server.connections.size, 1))
  await using first = new RawConnection(server.url)
  await using second = new RawConnection(server.url)
  for (const each of [first, second, first]) await each.send(get('/')).answer()

  await using third = new RawConnection(server.url)
  assert.equal((await third.send(get('/')).answer()).status, 200)
  assert.equal(await unfinished.closed(), '', 'a request head that never ends counts as idle')
  await using fourth = new RawConnection(server.url)
  assert.equal((await fourth.send(get('/')).answer()).status, 200)
  assert.equal(await second.closed(), '', 'the first connection was used after the second')
  for (const each of [first, third, fourth]) {
    assert.equal((await each.send(get('/')).answer()).status, 200)
  }
  const { size, evicted, dropped } = server.connections
  assert.deepEqual({ size, evicted, dropped }, { size: 3, evicted: 2, dropped: 0 })
})

test('closes no connection with a request in progress, and drops a new one if all have one', async () => {
  const waiting: ServerResponse[] = []
  await using server = await listenHttp((_request, response) => void waiting.push(response), {
    connectionsMax: 2,
  })
  await using first = new RawConnection(server.url).send(get('/'))
  await using second = new RawConnection(server.url).send(get('/'))
  await eventually(() => assert.equal(waiting.length, 2))
  await using third = new RawConnection(server.url).send(get('/'))
  assert.equal(await third.closed(), '')
  for (const response of waiting) response.end('ok')
  for (const each of [first, second]) assert.equal((await each.answer()).body, 'ok')
  const { size, evicted, dropped } = server.connections
  assert.deepEqual({ size, evicted, dropped }, { size: 2, evicted: 0, dropped: 1 })
})

test('frees a connection that does not read its answer sooner when all connections are busy', async () => {
  const waiting: ServerResponse[] = []
  const patience = { fullWriteStallMs: 200, checkEveryMs: 20 }
  await using server = await listenHttp(
    (request, response) => {
      if (request.url === '/large') response.end(LARGE)
      else waiting.push(response)
    },
    { connectionsMax: 2, patience },
  )
  await using _stalled = new RawConnection(server.url).pause().send(get('/large'))
  await using running = new RawConnection(server.url).send(get('/late'))
  await eventually(() => assert.deepEqual([waiting.length, server.connections.size], [1, 1]))
  await using other = new RawConnection(server.url).send(get('/late'))
  await eventually(() => assert.equal(waiting.length, 2))
  for (const response of waiting) response.end('ok')
  for (const each of [running, other]) assert.equal((await each.answer()).body, 'ok')
})
