import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { createBoundedFetch } from './bounded-fetch.ts'

const BODY_BYTES_MAX = 16 * 1_024
const CONNECTION_BYTES_MAX = 64 * 1_024
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'

/** Each piece is valid HTTP that `fetch` skips, so no limit of a body or of the headers applies. */
const FLOODS: Record<string, { first: string; piece: string; last: string }> = {
  'informational responses': {
    first: '',
    piece: 'HTTP/1.1 102 Processing\r\n\r\n',
    last: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok',
  },
  'chunk extensions': {
    first: CHUNKED,
    piece: `1;${'a'.repeat(1_000)}\r\n \r\n`,
    last: '2\r\nok\r\n0\r\n\r\n',
  },
  'one chunk extension': { first: `${CHUNKED}2;`, piece: 'a', last: '\r\nok\r\n0\r\n\r\n' },
  'a padded chunk size': { first: CHUNKED, piece: '0', last: '2\r\nok\r\n0\r\n\r\n' },
  headers: {
    first: 'HTTP/1.1 200 OK\r\n',
    piece: 'a: b\r\n',
    last: 'content-length: 2\r\n\r\nok',
  },
  trailers: { first: `${CHUNKED}2\r\nok\r\n0\r\n`, piece: 'a: b\r\n', last: '\r\n' },
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

for (const [name, { first, piece, last }] of Object.entries(FLOODS)) {
  test(`a server that sends ${name} is cut off after 64 KiB`, async () => {
    const flood = (bytes: number) => first + piece.repeat(Math.ceil(bytes / piece.length))
    // It never ends the response, so only the limit can end the request before its time is over.
    await using hostile = await startServer([flood(CONNECTION_BYTES_MAX)])
    await assert.rejects(hostile.fetch(), { message: 'The server sent more than 64 KiB.' })
    assert.equal(hostile.sockets.size, 1)

    const isShort = name === 'a padded chunk size'
    await using talkative = await startServer([flood(isShort ? 8 : 15_000) + last])
    assert.equal(await talkative.fetch(), 'ok')
  })
}

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
