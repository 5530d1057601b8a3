import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { sql } from 'kysely'
import { Client } from 'pg'
import { createLogger } from '../../src/platform/logger.ts'
import { Database } from '../../src/platform/pg/database.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

/** How long the service reuses the result of a check. */
const CHECK_REUSE_MS = 250
/** How many connections a node has for keys, sessions and readiness. */
const ACCESS_CONNECTIONS_MAX = 6

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const database = stack.use(await cloneDatabase())
const proxy = stack.use(await PgProxy.listen(database.connection))
const databaseUrl = urlThrough(proxy)
const annals = stack.use(
  await startTestApp({
    databaseUrl,
    timeoutFactor: 1,
    env: { ANNALS_METRICS_PORT: '0', ANNALS_RATE_LIMITS: 'off' },
  }),
)
const { workspaceKey: key } = await annals.createCompany()

function urlThrough({ port }: PgProxy): string {
  const { user, password, database: name } = database.connection
  return `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${name}`
}

afterEach(async () => {
  proxy.mode = 'pass'
  await eventually(async () => assert.equal((await annals.call('GET', '/ready')).status, 200))
})

/** The response, which must arrive within a second. */
async function promptly(method: string, path: string) {
  return await within(1_000, annals.call(method, path, { key }))
}

async function assertOutOfReach() {
  const health = await promptly('GET', '/health')
  assert.deepEqual([health.status, health.json], [200, { ok: false }])
  for (const path of ['/ready', '/v1/keys/status']) {
    const { status, json, headers } = await promptly('GET', path)
    assert.deepEqual([status, json.code], [503, 'unavailable'], path)
    assert.match(headers.get('retry-after') ?? '', /^[1-9]\d*$/, path)
  }
}

/** The service reuses a result for a moment, then it reports the outage. */
async function assertNoticed() {
  const startedMs = performance.now()
  for (;;) {
    const isLate = performance.now() - startedMs >= CHECK_REUSE_MS
    const { json } = await promptly('GET', '/health')
    if (!json.ok) return
    assert(!isLate, 'the outage was not noticed')
  }
}

async function assertWorks() {
  assert.deepEqual((await promptly('GET', '/health')).json, { ok: true })
  assert.deepEqual((await promptly('GET', '/ready')).json, { ok: true })
  assert.equal((await promptly('GET', '/v1/keys/status')).status, 200)
}

test('the service is healthy and ready with its database', assertWorks)

for (const mode of ['refuse', 'stall'] as const) {
  test(`while the database is unreachable (${mode}), every response arrives within a second, and the service recovers on its own`, async () => {
    await assertWorks()
    proxy.mode = mode
    await assertNoticed()
    // While the key is still cached, and later, when it is not.
    await assertOutOfReach()
    await eventually(async () => {
      assert.equal((await promptly('POST', '/v1/keys/any/rotate')).status, 503)
    })
    await assertOutOfReach()
    proxy.mode = 'pass'
    await eventually(assertWorks)
  })
}

test('a node is not ready while keys can’t be read, and waiting calls leave no connections behind', async () => {
  await assertWorks()
  const operator = new Client(database.connection)
  await operator.connect()
  try {
    await operator.query('begin')
    await operator.query('lock table api_key in access exclusive mode')
    await eventually(assertOutOfReach)
    // Long enough for more attempts than there are connections.
    for (let round = 0; round < 2; round += 1) await assertOutOfReach()
    const { rows } = await operator.query<{ count: number }>(
      `select count(*)::int as count from pg_locks
        where relation = 'api_key'::regclass and not granted`,
    )
    assert((rows[0]?.count ?? 0) <= ACCESS_CONNECTIONS_MAX, JSON.stringify(rows))
  } finally {
    await operator.end()
  }
  await eventually(assertWorks)
})

test('connections that stop responding are replaced automatically', async () => {
  await Promise.all(Array.from({ length: 4 }, () => annals.call('GET', '/v1/keys/status', { key })))
  proxy.silenceAll()
  await eventually(assertWorks)
})

test('a connection that breaks during a statement fails only that statement', async () => {
  for (const when of ['before', 'after'] as const) {
    // Created here, because the test runner assigns socket errors to the test that opened the
    // socket, and ignores them after that test. In the service, such an error would end the
    // process.
    await using own = new Database({
      connection: { connectionString: databaseUrl },
      role: 'annals_serving',
      connectionsMax: 1,
      logger: createLogger('silent'),
    })
    proxy.cutOnceAt('select 4711', when)
    await assert.rejects(sql`select 4711`.execute(own.db), /Connection terminated/)
    await eventually(async () => assert.equal(await own.isReachable(), true))
  }
})

test('many callers during an outage all get a response in time', async () => {
  proxy.mode = 'stall'
  await eventually(async () => {
    assert.equal((await promptly('POST', '/v1/keys/any/rotate')).status, 503)
  })
  const responses = await Promise.all(
    Array.from({ length: 100 }, () => promptly('GET', '/v1/keys/status')),
  )
  assert(responses.every(({ status }) => status === 503))
})

test('health checks of many callers share one query per quarter of a second', async () => {
  const queries = proxy.countSent('from "api_key"')
  // The check of an earlier test can still be reused.
  await eventually(async () => {
    await annals.call('GET', '/ready')
    assert(queries() > 0)
  })
  const before = queries()
  const startedMs = performance.now()
  const paths = Array.from({ length: 100 }, () => ['/health', '/ready']).flat()
  const responses = await Promise.all(paths.map((path) => annals.call('GET', path)))
  const elapsedMs = performance.now() - startedMs
  assert(responses.every(({ text }) => text === '{"ok":true}'))
  const sent = queries() - before
  assert(sent <= 1 + Math.ceil(elapsedMs / CHECK_REUSE_MS), `${sent} queries`)
})

test('a service whose database is gone can still be stopped', async () => {
  await using ownProxy = await PgProxy.listen(database.connection)
  const own = await startTestApp({ databaseUrl: urlThrough(ownProxy) })
  await own.call('GET', '/v1/keys/status', { key })
  ownProxy.mode = 'refuse'
  await own[Symbol.asyncDispose]()
})

test('a node that stops accepts no new connections', async () => {
  const own = await startTestApp()
  assert.equal((await own.call('GET', '/ready')).status, 200)
  const stopped = own[Symbol.asyncDispose]()
  await assert.rejects(own.call('GET', '/ready'))
  await stopped
})

test('only health and readiness are available without a key', async () => {
  for (const path of ['/health', '/ready']) {
    const { status, text } = await annals.call('GET', path)
    assert.deepEqual([status, text], [200, '{"ok":true}'])
  }
  assert.equal((await annals.call('GET', '/v1/keys/status')).status, 401)
})

test('metrics have a separate port and are not available on that of the API', async () => {
  await annals.call('GET', '/v1/keys/status')
  assert.equal((await annals.call('GET', '/metrics')).status, 404)
  const { metricsUrl } = annals.app
  assert(metricsUrl !== null && new URL(metricsUrl).port !== new URL(annals.url).port)
  const response = await fetch(`${metricsUrl}/metrics`)
  assert.equal(response.status, 200)
  assert.match(response.headers.get('content-type') ?? '', /^text\/plain/)
  const text = await response.text()
  assert.match(text, /^annals_request_answer_seconds_count\{.*operation="getKeyStatus".*\} \d+$/m)
  assert.match(text, /^annals_authentication_refuse_total\{code="missing_api_key"\} \d+$/m)
  assert.match(text, /^annals_connection_wait_count 0$/m)
  assert(!text.includes(key))
  for (const path of ['/', '/health', '/v1/keys/status']) {
    assert.equal((await fetch(`${metricsUrl}${path}`)).status, 404, path)
  }
})
