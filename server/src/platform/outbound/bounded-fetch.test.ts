import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { createBoundedFetch } from './bounded-fetch.ts'

const BODY_BYTES_MAX = 16 * 1_024
const CONNECTION_BYTES_MAX = 64 * 1_024
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

const TOO_MANY_BYTES = 'more than 64 KiB'
const TOO_LARGE_HEADERS = 'more than 16 KiB of headers'

type Flood = { first: string; piece: string; last: string; allowedBytes: number; sent: string }

/** Each piece is valid HTTP that isn't a part of a body, so the limit of a body doesn't apply. */
const FLOODS: Record<string, Flood> = {
  'informational responses': {
    first: '',
    piece: 'HTTP/1.1 102 Processing\r\n\r\n',
    last: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
    allowedBytes: 15_000,
    sent: TOO_MANY_BYTES,
  },
  'chunk extensions': {
    first: CHUNKED,
    piece: `1;${'a'.repeat(1_000)}\r\n \r\n`,
    last: '2\r\nok\r\n0\r\n\r\n',
    allowedBytes: 15_000,
    sent: TOO_MANY_BYTES,
  },
  'one chunk extension': {
    first: `${CHUNKED}2;`,
    piece: 'a',
    last: '\r\nok\r\n0\r\n\r\n',
    allowedBytes: 15_000,
    sent: TOO_MANY_BYTES,
  },
  'a padded chunk size': {
    first: CHUNKED,
    piece: '0',
    last: '2\r\nok\r\n0\r\n\r\n',
    allowedBytes: 8,
    sent: TOO_MANY_BYTES,
  },
  headers: {
    first: 'HTTP/1.1 200 OK\r\n',
    piece: 'a: b\r\n',
    last: 'content-length: 2\r\n\r\nok',
    allowedBytes: 1_000,
    sent: TOO_LARGE_HEADERS,
  },
  'one large header': {
    first: 'HTTP/1.1 200 OK\r\na: ',
    piece: 'b',
    last: '\r\ncontent-length: 2\r\n\r\nok',
    allowedBytes: 15_000,
    sent: TOO_LARGE_HEADERS,
  },
  trailers: {
    first: `${CHUNKED}2\r\nok\r\n0\r\n`,
    piece: 'a: b\r\n',
    last: '\r\n',
    allowedBytes: 15_000,
    sent: TOO_LARGE_HEADERS,
  },
}

const fetchBounded = createBoundedFetch({ bodyBytesMax: BODY_BYTES_MAX })

/** Answers each request with the next of the texts, and leaves the connection open. */
async function startServer(texts: readonly string[]) {
  const sockets = new Set<Socket>()
  const left = [...texts]
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', () => socket.write(left.shift() ?? ''))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  assert(typeof address === 'object' && address !== null)
  const url = `http://127.0.0.1:${address.port}/`
  return {
    sockets,
    url,
    fetch: async (): Promise<string> => {
      const request = { method: 'POST', headers: {}, body: 'a request' }
      const response = await fetchBounded(url, request, AbortSignal.timeout(20_000))
      return (await response.text()).trim()
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

for (const [name, { first, piece, last, allowedBytes, sent }] of Object.entries(FLOODS)) {
  test(`a server that sends ${name} is cut off`, async () => {
    const flood = (bytes: number) => first + piece.repeat(Math.ceil(bytes / piece.length))
    // It never ends the response, so only the limit can end the request before its time is over.
    await using hostile = await startServer([flood(CONNECTION_BYTES_MAX)])
    await assert.rejects(hostile.fetch(), { message: `The server sent ${sent}.` })
    assert.equal(hostile.sockets.size, 1)

    await using talkative = await startServer([flood(allowedBytes) + last])
    assert.equal(await talkative.fetch(), 'ok')
  })
}

test('a response can have 16 KiB of headers even if its body can be larger', async () => {
  const fetchLarge = createBoundedFetch({ bodyBytesMax: 256 * 1_024 })
  const headers = Array.from({ length: 3_000 }, (_, nth) => `x-${nth}: value\r\n`).join('')
  await using server = await startServer([`HTTP/1.1 200 OK\r\n${headers}`])
  const request = { method: 'GET', headers: {} }
  await assert.rejects(fetchLarge(server.url, request, AbortSignal.timeout(20_000)), {
    message: `The server sent ${TOO_LARGE_HEADERS}.`,
  })
})

test('a response can have 200 headers', async () => {
  const withHeaders = (count: number) =>
    `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(count - 1)}content-length: 2\r\n\r\nok`
  await using server = await startServer([withHeaders(200), withHeaders(201)])
  assert.equal(await server.fetch(), 'ok')
  await assert.rejects(server.fetch(), { message: 'The server sent more than 200 headers.' })
})

test('returns only the headers that callers read', async () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nRetry-After: 5\r\n'
  const others = 'WWW-Authenticate: Bearer a="b"\r\nContent-Length: 2\r\n\r\nok'
  await using server = await startServer([head + others])
  const request = { method: 'GET', headers: {} }
  const { headers } = await fetchBounded(server.url, request, AbortSignal.timeout(20_000))
  assert.deepEqual(
    [...headers],
    [
      ['content-type', 'text/plain'],
      ['retry-after', '5'],
    ],
  )
})

test('the limit applies to each response of a connection', async () => {
  const padding = 'HTTP/1.1 102 Processing\r\n\r\n'.repeat(1_500)
  const response = `${padding}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`
  await using server = await startServer([response, response, response])
  for (let nth = 0; nth < 3; nth += 1) assert.equal(await server.fetch(), 'ok')
  // So at least one connection received more than the limit.
  assert(server.sockets.size < 3, `${server.sockets.size} connections`)
})

test('a body is cut off after its own limit', async () => {
  const length = BODY_BYTES_MAX + 1
  const head = `HTTP/1.1 200 OK\r\ncontent-length: ${length}\r\n\r\n`
  await using server = await startServer([head + 'x'.repeat(length)])
  await assert.rejects(server.fetch(), { message: 'The server sent more than 16 KiB.' })
})

test('names the reason if no connection can be opened', async () => {
  const server = await startServer([])
  await server[Symbol.asyncDispose]()
  await assert.rejects(server.fetch(), /^Error: The connection failed: connect ECONNREFUSED/)
})
