import assert from 'node:assert/strict'
import type { RequestListener, ServerResponse } from 'node:http'
import { test } from 'node:test'
import { exemptFromWriteStall } from '../../src/edge/http/write-stall.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { listenHttp } from '../harness/http/http-server.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { SlowReader } from '../harness/http/slow-reader.ts'

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`
/** The server closes the connection after the response. */
const lastGet = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`
const BODY_BYTES = 10
const post = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`
/** More than the kernel holds for one connection on any machine. */
const LARGE = Buffer.alloc(64 * 1_024 * 1_024, 'x')

test('closes the connection that has been idle the longest for a new one', async () => {
  await using server = await listenHttp((_request, response) => response.end('ok'), {
    connectionsMax: 3,
  })
  await using unfinished = new RawConnection(server.url)
  unfinished.send('GET / HTTP/1.1\r\nhost: x\r\n')
  await eventually(() => assert.equal(server.connections.size, 1))
  await using first = new RawConnection(server.url)
  await using second = new RawConnection(server.url)
  for (const each of [first, second, first]) await each.send(get('/')).response()

  await using third = new RawConnection(server.url)
  assert.equal((await third.send(get('/')).response()).status, 200)
  assert.equal(await unfinished.closed(), '', 'a request head that never ends counts as idle')
  await using fourth = new RawConnection(server.url)
  assert.equal((await fourth.send(get('/')).response()).status, 200)
  assert.equal(await second.closed(), '', 'the first connection was used after the second')
  for (const each of [first, third, fourth]) {
    assert.equal((await each.send(get('/')).response()).status, 200)
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
  for (const each of [first, second]) assert.equal((await each.response()).body, 'ok')
  const { size, evicted, dropped } = server.connections
  assert.deepEqual({ size, evicted, dropped }, { size: 2, evicted: 0, dropped: 1 })
})

test('frees a connection that does not read its response sooner when all connections are busy', async () => {
  const waiting: ServerResponse[] = []
  const timeouts = { fullWriteStallMs: 200, checkEveryMs: 20 }
  await using server = await listenHttp(
    (request, response) => {
      if (request.url === '/large') response.end(LARGE)
      else waiting.push(response)
    },
    { connectionsMax: 2, timeouts },
  )
  await using _stalled = new RawConnection(server.url).pause().send(get('/large'))
  await using running = new RawConnection(server.url).send(get('/late'))
  await eventually(() => assert.deepEqual([waiting.length, server.connections.size], [1, 1]))
  await using other = new RawConnection(server.url).send(get('/late'))
  await eventually(() => assert.equal(waiting.length, 2))
  for (const response of waiting) response.end('ok')
  for (const each of [running, other]) assert.equal((await each.response()).body, 'ok')
})

/** Responds to GET at once, and to POST when its body is complete. */
class BodyReader {
  /** Bytes of bodies that have arrived. */
  bytes = 0
  heads = 0
  /** Complete requests that wait for `respondToAll`. */
  readonly complete: ServerResponse[] = []

  readonly serve: RequestListener = (request, response) => {
    this.heads += 1
    if (request.method === 'GET' && request.url === '/') {
      response.end('ok')
      return
    }
    request.on('data', (chunk: Buffer) => (this.bytes += chunk.length))
    request.on('end', () => this.complete.push(response))
    // The connection was closed for another one.
    request.on('error', () => {})
  }

  respondToAll(): void {
    for (const response of this.complete.splice(0)) response.end('ok')
  }
}

test('closes a connection whose body does not arrive before one whose body makes progress or is complete', async () => {
  const reader = new BodyReader()
  await using server = await listenHttp(reader.serve, { connectionsMax: 3 })
  await using complete = new RawConnection(server.url).send(`${post}${'x'.repeat(BODY_BYTES)}`)
  await eventually(() => assert.equal(reader.complete.length, 1))
  await using upload = new RawConnection(server.url).send(post)
  await eventually(() => assert.equal(reader.heads, 2))
  await using stalled = new RawConnection(server.url).send(`${post}x`)
  await eventually(() => assert.equal(reader.heads, 3))
  upload.send('xx')
  await eventually(() => assert.equal(reader.bytes, BODY_BYTES + 3))

  await using newcomer = new RawConnection(server.url).send(get('/'))
  assert.equal((await newcomer.response()).status, 200)
  assert.equal(await stalled.closed(), '', 'closed without a response')
  upload.send('x'.repeat(BODY_BYTES - 2))
  await eventually(() => assert.equal(reader.complete.length, 2))
  reader.respondToAll()
  for (const each of [complete, upload]) assert.equal((await each.response()).body, 'ok')
  const { size, evicted, dropped } = server.connections
  assert.deepEqual({ size, evicted, dropped }, { size: 3, evicted: 1, dropped: 0 })
})

test('keeps idle connections and serves new ones while most connections have slow bodies', async () => {
  const reader = new BodyReader()
  await using server = await listenHttp(reader.serve, { connectionsMax: 10 })
  await using idle = new RawConnection(server.url).send(get('/'))
  await idle.response()
  await using stack = new AsyncDisposableStack()
  const open = () => stack.use(new RawConnection(server.url))
  const slow = Array.from({ length: 9 }, () => open().send(`${post}x`))
  await eventually(() => assert.equal(reader.heads, 10))
  // All of them are accepted before the first sends its request.
  const newcomers = Array.from({ length: 4 }, open)
  for (const each of slow.slice(0, 4)) assert.equal(await each.closed(), '')
  for (const each of [idle, ...newcomers]) {
    assert.equal((await each.send(get('/')).response()).status, 200)
  }
})

test('keeps an unfinished body while most connections are idle', async () => {
  const reader = new BodyReader()
  await using server = await listenHttp(reader.serve, { connectionsMax: 4 })
  await using upload = new RawConnection(server.url).send(post)
  await eventually(() => assert.equal(reader.heads, 1))
  await using stack = new AsyncDisposableStack()
  for (let nth = 0; nth < 10; nth += 1) {
    await stack.use(new RawConnection(server.url)).send(get('/')).response()
  }
  upload.send('x'.repeat(BODY_BYTES))
  await eventually(() => assert.equal(reader.complete.length, 1))
  reader.respondToAll()
  assert.equal((await upload.response()).body, 'ok')
})

test('protects a connection with a slow body only until its earlier requests have responses', async () => {
  const reader = new BodyReader()
  await using server = await listenHttp(reader.serve, { connectionsMax: 1 })
  await using pipelined = new RawConnection(server.url).send(`${get('/late')}${post}x`)
  await eventually(() => assert.deepEqual([reader.heads, reader.complete.length], [2, 1]))
  await using early = new RawConnection(server.url).send(get('/'))
  assert.equal(await early.closed(), '', 'dropped')
  reader.respondToAll()
  assert.equal((await pipelined.response()).body, 'ok')
  await using newcomer = new RawConnection(server.url).send(get('/'))
  assert.equal((await newcomer.response()).status, 200)
  assert.equal(await pipelined.closed(), '')
})

/** A small response to `GET /`, one to `/late` when the test sends it, and large ones to all others. */
class LargeResponses {
  /** Large responses that have started. */
  begun = 0
  readonly late: ServerResponse[] = []

  readonly serve: RequestListener = (request, response) => {
    // The connection was closed for another one.
    request.on('error', () => {})
    if (request.url === '/late') {
      this.late.push(response)
    } else if (request.url === '/' && request.method === 'GET') {
      response.end('ok')
    } else {
      if (request.url === '/download') exemptFromWriteStall(response)
      request.on('end', () => {
        this.begun += 1
        response.end(LARGE)
      })
      request.resume()
    }
  }
}

const postWithBody = `${post}${'x'.repeat(BODY_BYTES)}`
/** Requests whose first response is large. */
const SLOWLY_READ = {
  GET: get('/large'),
  POST: postWithBody,
  'a GET with more requests behind it': `${get('/large')}${get('/')}${postWithBody}`,
  'a GET with an unfinished request behind it': `${get('/large')}${post}x`,
}
for (const [name, requests] of Object.entries(SLOWLY_READ)) {
  test(`serves new and idle clients while others read slowly on most connections: ${name}`, async () => {
    const responses = new LargeResponses()
    await using server = await listenHttp(responses.serve, { connectionsMax: 10 })
    await using idle = new RawConnection(server.url).send(get('/'))
    await idle.response()
    await using readers = new AsyncDisposableStack()
    const open = () => readers.use(new SlowReader(server.url, requests))
    const slow = Array.from({ length: 9 }, open)
    await eventually(() => assert.equal(responses.begun, 9))
    for (let nth = 0; nth < 10; nth += 1) {
      for (const each of slow) each.readSome()
      await using newcomer = new RawConnection(server.url).send(get('/'))
      for (const each of [newcomer, idle.send(get('/'))]) {
        assert.equal((await each.response()).body, 'ok')
      }
      // Clients that are disconnected come back.
      slow.push(open())
      await eventually(() => assert.equal(responses.begun, slow.length))
    }
    assert.equal(server.connections.dropped, 0)
  })
}

test('closes the connection that has been sending the longest, and none whose response has not started', async () => {
  const responses = new LargeResponses()
  await using server = await listenHttp(responses.serve, { connectionsMax: 3 })
  await using late = new RawConnection(server.url).send(get('/late'))
  await eventually(() => assert.equal(responses.late.length, 1))
  await using first = new SlowReader(server.url, lastGet('/large'))
  await eventually(() => assert.equal(responses.begun, 1))
  await using second = new SlowReader(server.url, lastGet('/large'))
  await eventually(() => assert.equal(responses.begun, 2))
  await using newcomer = new RawConnection(server.url).send(get('/'))
  assert.equal((await newcomer.response()).body, 'ok')
  assert((await first.readAll()) < LARGE.length)
  assert((await second.readAll()) > LARGE.length)
  for (const response of responses.late) response.end('ok')
  assert.equal((await late.response()).body, 'ok')
})

test('closes a response that follows a slow body', async () => {
  const responses = new LargeResponses()
  await using server = await listenHttp(responses.serve, { connectionsMax: 2 })
  await using uploads = new AsyncDisposableStack()
  const open = () => uploads.use(new RawConnection(server.url).pause().send(`${post}x`))
  const slow = [open(), open(), open()]
  // The third replaces one of the others, so both that remain are known to be receiving.
  await eventually(() => assert.equal(server.connections.evicted, 1))
  for (const each of slow) each.send('x'.repeat(BODY_BYTES - 1))
  await eventually(() => assert.equal(responses.begun, 2))
  await using newcomer = new RawConnection(server.url).send(get('/'))
  assert.equal((await newcomer.response()).body, 'ok')
})

test('keeps a slowly read response while most connections are idle', async () => {
  const responses = new LargeResponses()
  await using server = await listenHttp(responses.serve, { connectionsMax: 4 })
  await using reader = new SlowReader(server.url, lastGet('/large'))
  await eventually(() => assert.equal(responses.begun, 1))
  await using stack = new AsyncDisposableStack()
  for (let nth = 0; nth < 10; nth += 1) {
    await stack.use(new RawConnection(server.url)).send(get('/')).response()
  }
  assert((await reader.readAll()) > LARGE.length)
})

test('closes no download for a new connection', async () => {
  const responses = new LargeResponses()
  await using server = await listenHttp(responses.serve, { connectionsMax: 1 })
  await using download = new SlowReader(server.url, lastGet('/download'))
  await eventually(() => assert.equal(responses.begun, 1))
  await using newcomer = new RawConnection(server.url).send(get('/'))
  assert.equal(await newcomer.closed(), '', 'dropped')
  assert((await download.readAll()) > LARGE.length)
})
