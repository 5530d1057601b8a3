import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertErrorShape } from '../harness/http/error-shape.ts'
import { eventually, TurnClock, within } from '../harness/timing/eventually.ts'
import { HttpThread } from '../harness/http/http-thread.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ timeouts: { anonymousBodyMs: 300 } })
after(() => annals[Symbol.asyncDispose]())

const PATH = '/v1/events/batch'
const BODY_BYTES_MAX = 4 * 1_024 * 1_024
const EVENT = { category: 'flood', action: 'flood' }

function head(key: string, headers: string, path = PATH): string {
  return `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${headers}\r\n`
}

function chunksOf(text: string, chunkBytes: number): string {
  const chunks: string[] = []
  for (let at = 0; at < text.length; at += chunkBytes) {
    const chunk = text.slice(at, at + chunkBytes)
    chunks.push(`${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  }
  return chunks.join('')
}

test('rejects a body of one-byte chunks after 1,000 of them, and closes the connection', async () => {
  const { workspaceKey } = await annals.createCompany({ plan: 'FREE' })
  await using connection = new RawConnection(annals.url)
  connection.send(head(workspaceKey, 'transfer-encoding: chunked\r\n'))
  connection.send('1\r\n \r\n'.repeat(200_000))
  const response = await connection.response()
  assertErrorShape(response, { status: 400, code: 'invalid_request' })
  assert.match(response.body, /chunks/)
  assert.equal(await connection.closed(), '')
})

test('closes a connection when chunks follow a rejection', async () => {
  for (const path of ['/v1/events', '/nowhere']) {
    await using connection = new RawConnection(annals.url)
    connection.send(head('nonsense', 'transfer-encoding: chunked\r\n', path))
    connection.send('1\r\n \r\n'.repeat(10_000))
    const { status } = await connection.response()
    assert(status === 401 || status === 404, String(status))
    // Until the request timeout, if the chunks were still parsed.
    assert.equal(await within(15_000, connection.closed()), '', path)
  }
})

test('closes a connection when more than 5 MB follow a rejection', async () => {
  const data = 'x'.repeat(65_536)
  for (const framing of ['content-length: 100000000000', 'transfer-encoding: chunked']) {
    await using connection = new RawConnection(annals.url)
    connection.send(`POST /v1/events HTTP/1.1\r\nhost: x\r\n${framing}\r\n\r\n`)
    assert.equal((await connection.response()).status, 401)
    const piece = framing.startsWith('content') ? data : `10000\r\n${data}\r\n`
    for (let nth = 0; nth < 100; nth += 1) connection.send(piece)
    // Any request ends after 30 seconds.
    assert.equal(await within(20_000, connection.closed()), '')
  }
})

test('keeps a connection open after rejecting a complete chunked body', async () => {
  await using connection = new RawConnection(annals.url)
  const request = head('nonsense', 'transfer-encoding: chunked\r\n') + '2\r\n{}\r\n0\r\n\r\n'
  assert.equal((await connection.send(request).response()).status, 401)
  assert.equal((await connection.send(request).response()).status, 401)
})

test('serves a large body in small segments or small chunks', async () => {
  const { workspaceKey } = await annals.createCompany()
  const text = JSON.stringify({ events: [{ ...EVENT, metadata: { a: 'x'.repeat(250_000) } }] })
  await using segmented = new RawConnection(annals.url)
  segmented.send(head(workspaceKey, `content-length: ${text.length}\r\n`))
  for (let at = 0; at < text.length; at += 50) segmented.send(text.slice(at, at + 50))
  await using chunked = new RawConnection(annals.url)
  chunked.send(head(workspaceKey, 'transfer-encoding: chunked\r\n'))
  chunked.send(`${chunksOf(text, 100)}0\r\n\r\n`)
  for (const connection of [segmented, chunked]) {
    const { status, body } = await connection.response()
    assert.deepEqual([status, JSON.parse(body).results[0].status], [200, 201])
  }
})

test('serves a short body in one-byte chunks', async () => {
  const { workspaceKey } = await annals.createCompany()
  await using connection = new RawConnection(annals.url)
  connection.send(head(workspaceKey, 'transfer-encoding: chunked\r\n'))
  connection.send(`${chunksOf(JSON.stringify({ events: [EVENT] }), 1)}0\r\n\r\n`)
  assert.equal((await connection.response()).status, 200)
})

test('unfinished bodies of one key use at most 32 MB, while another key is served', async () => {
  const { workspaceKey } = await annals.createCompany()
  const { workspaceKey: neighbor } = await annals.createCompany()
  await using stack = new AsyncDisposableStack()
  const start = head(workspaceKey, `content-length: ${BODY_BYTES_MAX}\r\n`)
  const part = Buffer.alloc(BODY_BYTES_MAX - 1, ' ')
  const open = () => stack.use(new RawConnection(annals.url)).send(start).send(part)
  const connections = Array.from({ length: 10 }, open)
  const refused = await Promise.race(connections.map((connection) => connection.response()))
  assertErrorShape(refused, { status: 429, code: 'rate_limited' })
  assert(Number(refused.headers.get('retry-after')) >= 1)
  const served = await annals.call('POST', PATH, { key: neighbor, body: { events: [EVENT] } })
  assert.equal(served.status, 200, served.text)
  await stack.disposeAsync()
  await eventually(async () => {
    const again = await annals.call('POST', PATH, { key: workspaceKey, text: part })
    assert.equal(again.json.code, 'invalid_json', again.text)
  })
})

test('a body without a key has less time to arrive than one with a key', async () => {
  const { workspaceKey } = await annals.createCompany()
  const text = JSON.stringify({ events: [EVENT] })
  const headers = `content-length: ${text.length}\r\n`
  using clock = new TurnClock()
  await using withKey = new RawConnection(annals.url).send(`${head(workspaceKey, headers)}{`)
  for (const path of ['/dashboard/session', '/dashboard/password-reset', '/dashboard/links/look']) {
    await using anonymous = new RawConnection(annals.url).send(`${head('', headers, path)}{`)
    assertErrorShape(await anonymous.response(), { status: 408, code: 'request_timeout' })
    assert.equal(await anonymous.closed(), '', path)
  }
  // The limit of every request is 30 s.
  assert(clock.ms < 15_000)
  assert.equal((await withKey.send(text.slice(1)).response()).status, 200)
})

/** The slowest text of its size: the escape rules out JSON.parse, and each number is checked. */
const SLOW_TEXT = `{"t":"\\n","s":[${'1e1,'.repeat(4_040)}1]}`
const SLOW_BODIES = {
  'an event': ['/v1/events', SLOW_TEXT],
  'a batch': [PATH, `{"events":[{"category":"c","action":"a","metadata":${SLOW_TEXT}}]}`],
} as const
const SENDERS = 60
const ROUNDS = 9
/** An event takes several turns of the event loop, and a turn could read a body for each sender. */
const OVERTAKEN_MAX = SENDERS / 2

for (const [what, [path, text]] of Object.entries(SLOW_BODIES)) {
  test(`a flood of small bodies that are slow to read delays no other company: ${what}`, async () => {
    const [hostile, quiet] = [await annals.createCompany(), await annals.createCompany()]
    await using client = new HttpThread()
    const headers = {
      authorization: `Bearer ${hostile.workspaceKey}`,
      'content-type': 'application/json',
    }
    const body = Buffer.from(text)
    assert(body.length <= 16 * 1_024)
    const over = new AbortController()
    let responses = 0
    const floods = Array.from({ length: SENDERS }, async () => {
      while (!over.signal.aborted) {
        await client.call({ url: annals.url + path, method: 'POST', headers, body })
        responses += 1
      }
    })
    await eventually(() => assert(responses > SENDERS), { timeoutMs: 60_000 })
    const overtaken: number[] = []
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = responses
      const { status } = await annals.call('POST', '/v1/events', {
        key: quiet.workspaceKey,
        body: EVENT,
      })
      assert.equal(status, 201)
      overtaken.push(responses - before)
    }
    over.abort()
    await Promise.all(floods)
    const median = overtaken.toSorted((a, b) => a - b)[ROUNDS >> 1] ?? 0
    assert(median < OVERTAKEN_MAX, `after ${overtaken.join()} bodies of the flood`)
  })
}

const BYTES_PER_SECOND_MAX = 32_000_000
const LARGE_SENDERS = 4
const LARGE_ROUNDS = 6

test('bodies that are refused arrive at no more than 32 MB per second', async () => {
  const { workspaceKey } = await annals.createCompany({ plan: 'ENTERPRISE' })
  await using client = new HttpThread()
  const headers = { authorization: `Bearer ${workspaceKey}`, 'content-type': 'application/json' }
  const request = { url: `${annals.url}/v1/events`, method: 'POST', headers, dropsText: true }
  const body = Buffer.alloc(BODY_BYTES_MAX, ' ')
  const startedMs = performance.now()
  await Promise.all(
    Array.from({ length: LARGE_SENDERS }, async () => {
      for (let round = 0; round < LARGE_ROUNDS; round += 1) {
        assert.equal((await client.call({ ...request, body })).status, 413)
      }
    }),
  )
  const seconds = (performance.now() - startedMs) / 1_000
  // The last body of each sender can still be on its way, and a second's worth arrives at once.
  const bytes = BODY_BYTES_MAX * LARGE_SENDERS * (LARGE_ROUNDS - 1)
  const secondsMin = bytes / BYTES_PER_SECOND_MAX - 1
  assert(seconds >= secondsMin, `${bytes} bytes in ${seconds} s`)
})
