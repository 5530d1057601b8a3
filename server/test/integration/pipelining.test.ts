import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { assertErrorShape } from '../harness/http/error-shape.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { RawConnection } from '../harness/http/raw-http.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_METRICS_PORT: '0' } })
after(() => annals[Symbol.asyncDispose]())
/** Only for a body that doesn't arrive, because on a busy machine other requests can take this long. */
const impatient = await startTestApp({
  databaseUrl: annals.database.url,
  timeouts: { headersMs: 1_000, requestMs: 1_000, checkEveryMs: 50 },
})
after(() => impatient[Symbol.asyncDispose]())
const { workspaceKey } = await annals.createCompany()
const metricsUrl = annals.app.metricsUrl ?? ''

const EVENT = JSON.stringify({ category: 'auth', action: 'user.login' })
const INGEST = [
  'POST /v1/events HTTP/1.1',
  'host: x',
  `authorization: Bearer ${workspaceKey}`,
  'content-type: application/json',
  `content-length: ${EVENT.length}`,
  '',
  EVENT,
].join('\r\n')
const HEALTH = 'GET /health HTTP/1.1\r\nhost: x\r\n\r\n'

const BAD = { status: 400, code: 'invalid_request' }

/** Requests that end the connection while earlier ones are in progress. */
const FOLLOWERS: Record<string, { sent: string; expected: { status: number; code: string } }> = {
  'a parse error': { sent: 'BREW /\r\n\r\n', expected: BAD },
  'HTTP/2 without TLS': { sent: 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', expected: BAD },
  'an unsupported expectation': {
    sent: 'POST /v1/events HTTP/1.1\r\nhost: x\r\nexpect: gold\r\ncontent-length: 9\r\n\r\n',
    expected: BAD,
  },
  CONNECT: {
    sent: 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n',
    expected: { status: 405, code: 'method_not_allowed' },
  },
  'two Host headers': { sent: 'GET / HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n', expected: BAD },
  'no Host header': { sent: 'GET /health HTTP/1.1\r\n\r\n', expected: BAD },
  'a broken chunk': {
    sent: INGEST.replace(/content-length[^]*/, 'transfer-encoding: chunked\r\n\r\nZZ\r\n'),
    expected: BAD,
  },
  'headers that are too large': {
    sent: `GET / HTTP/1.1\r\nhost: x\r\nx: ${'x'.repeat(20_000)}\r\n\r\n`,
    expected: { status: 431, code: 'headers_too_large' },
  },
  'a body that does not arrive': {
    sent: INGEST.replace(EVENT, EVENT.slice(0, 5)),
    expected: { status: 408, code: 'request_timeout' },
  },
}

for (const [name, { sent, expected }] of Object.entries(FOLLOWERS)) {
  test(`returns 201 for ingests in order when ${name} follows them, then rejects it and closes`, async () => {
    for (const ingests of [1, 3]) {
      await using ledger = await lockLedger()
      const { url } = expected.status === 408 ? impatient : annals
      await using connection = new RawConnection(url)
      connection.send(INGEST.repeat(ingests) + sent)
      // Input after the refusal is dropped and doesn't change the responses.
      if (expected.status !== 408) connection.send(`${HEALTH}BREW\r\n\r\n`)
      await ledger.isWaitedFor()
      await ledger.release()
      for (let nth = 0; nth < ingests; nth += 1) {
        const { status, body } = await connection.response()
        assert.equal(status, 201, body)
      }
      const refusal = await connection.response()
      assertErrorShape(refusal, expected)
      assert.equal(refusal.headers.get('connection'), 'close')
      assert.equal(await connection.closed(), '')
    }
  })
}

test('returns 201 for an ingest when Expect: 100-continue follows it', async () => {
  await using ledger = await lockLedger()
  await using connection = new RawConnection(annals.url)
  const expecting = INGEST.replace('content-type', 'expect: 100-continue\r\ncontent-type')
  connection.send(INGEST + expecting)
  await ledger.isWaitedFor()
  await ledger.release()
  const statuses = [
    await connection.response(),
    await connection.response(),
    await connection.response(),
  ]
  assert.deepEqual(
    statuses.map(({ status }) => status),
    [201, 100, 201],
  )
})

/** Node's parser leaves HTTP after a request with these headers, and drops the rest of what it was given. */
const withUpgrade = (request: string) =>
  request.replace('host: x', 'host: x\r\nconnection: upgrade\r\nupgrade: h2c')
const CHUNKED = INGEST.replace(
  /content-length[^]*/,
  `transfer-encoding: chunked\r\n\r\n${EVENT.length.toString(16)}\r\n${EVENT}\r\n0\r\n\r\n`,
)
const UPGRADES: readonly [name: string, request: string, status: number][] = [
  ['without a body', HEALTH, 200],
  ['with a body', INGEST, 201],
  ['with a chunked body', CHUNKED, 201],
]

for (const [name, request, expected] of UPGRADES) {
  test(`ends the connection after an upgrade ${name}, so that nothing after it is lost`, async () => {
    await using ledger = await lockLedger()
    await using connection = new RawConnection(annals.url)
    connection.send(INGEST + withUpgrade(request) + HEALTH)
    await ledger.isWaitedFor()
    await ledger.release()
    assert.equal((await connection.response()).status, 201)
    const response = await connection.response()
    assert.equal(response.status, expected)
    assert.equal(response.headers.get('connection'), 'close')
    assert.deepEqual(await connection.statuses(), [])
  })
}

test('runs no part of a body as a request after an upgrade that was rejected early', async () => {
  await using connection = new RawConnection(annals.url)
  const anonymous = withUpgrade(INGEST).replace(/authorization.*\r\n/, '')
  const response = await connection.send(anonymous.slice(0, -EVENT.length)).response()
  assert.equal(response.status, 401)
  const smuggled = 'GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n'
  const next = INGEST.replace(/content-length[^]*/, `content-length: ${smuggled.length}\r\n\r\n`)
  connection.send(EVENT + next)
  connection.send(smuggled)
  assert.equal(response.headers.get('connection'), 'close')
  assert.deepEqual(await connection.statuses(), [])
})

test('serves nothing after a request that ends the connection', async () => {
  const before = await countEvents()
  await using ledger = await lockLedger()
  await using connection = new RawConnection(annals.url)
  connection.send(INGEST.replace('host: x', 'host: x\r\nconnection: close'))
  await ledger.isWaitedFor()
  connection.send(INGEST.repeat(3))
  await ledger.release()
  assert.deepEqual(await connection.statuses(), [201])
  assert.equal(await countEvents(), before + 1)
})

test('limits the requests in progress per connection', async () => {
  await using ledger = await lockLedger()
  await using connection = new RawConnection(annals.url)
  connection.send(INGEST)
  await ledger.isWaitedFor()
  connection.send(HEALTH.repeat(5_000))
  await eventually(() => assert.equal(connection.unsentBytes, 0))
  await ledger.release()
  const statuses = await connection.statuses()
  assert.deepEqual(statuses, [201, ...Array.from({ length: 15 }, () => 200), 429])
})

test('parses almost nothing of what follows a rejection in the same packet', async () => {
  for (const first of [HEALTH, HEALTH.replace('host: x', 'host: x\r\nconnection: close')]) {
    let parsed = 0
    const count = () => (parsed += 1)
    subscribe('http.server.request.start', count)
    await using connection = new RawConnection(annals.url)
    const statuses = await connection.send(first + HEALTH.repeat(5_000)).statuses()
    unsubscribe('http.server.request.start', count)
    assert.equal(statuses[0], 200)
    assert(parsed <= 20, `${parsed} requests were parsed`)
  }
})

test('serves sixty pipelining connections in turn, and other callers between them', async () => {
  await using stack = new AsyncDisposableStack()
  // Fewer requests than the limit of delayed responses, so none of the connections is closed.
  const connections = Array.from({ length: 60 }, () =>
    stack.use(new RawConnection(annals.url)).send(HEALTH.repeat(16)),
  )
  assert.equal((await annals.call('GET', '/health')).status, 200)
  for (const connection of connections) {
    const statuses: number[] = []
    for (let nth = 0; nth < 16 && statuses.at(-1) !== 503; nth += 1) {
      statuses.push((await connection.response()).status)
    }
    assert.deepEqual(new Set(statuses.slice(0, -1)), new Set([200]))
  }
  assert.equal((await annals.call('GET', '/health')).status, 200)
})

test('also responds in order on the metrics port', async () => {
  for (const [name, { sent, expected }] of Object.entries(FOLLOWERS)) {
    if (expected.status === 408) continue
    await using connection = new RawConnection(metricsUrl)
    connection.send(`GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n${sent}`)
    assert.match((await connection.response()).body, /annals_batch_commit_seconds/, name)
    assert((await connection.response()).status >= 400, name)
    assert.equal(await connection.closed(), '', name)
  }
})

async function countEvents(): Promise<number> {
  const { json } = await annals.call('GET', '/v1/events?limit=200', { key: workspaceKey })
  return json.data.length
}

type LockedLedger = AsyncDisposable & {
  isWaitedFor: () => Promise<void>
  release: () => Promise<void>
}

/** Blocks all commits of events until released. */
async function lockLedger(): Promise<LockedLedger> {
  const client = new Client(annals.database.connection)
  await client.connect()
  await client.query('begin')
  await client.query('lock table event in share mode')
  return {
    isWaitedFor: () =>
      eventually(async () => {
        const { rowCount } = await client.query(
          `select from pg_locks where relation = 'event'::regclass and not granted`,
        )
        assert(rowCount)
      }),
    release: async () => void (await client.query('rollback')),
    [Symbol.asyncDispose]: () => client.end(),
  }
}
