import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { OperatorError } from '../../src/errors.ts'
import { startEngine } from '../../src/platform/engine/embedded-postgres.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { migrate, readMigrations } from '../../src/platform/pg/migrate.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { EngineFolder, query, SMALL_ENGINE } from '../harness/database/engine.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { cancelWaits, waitForStandby } from '../harness/database/standby.ts'
import { type TestResponse, startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { urlOf } from '../harness/database/template-db.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const folder = stack.use(EngineFolder.prepared())
// A separate engine, because waiting for a standby affects the whole cluster.
const engine = stack.use(
  await startEngine({ dataDir: folder.dataDir, exclusive: false, settings: SMALL_ENGINE }),
)
const databaseUrl = urlOf(engine.connection)
// Without loops, because their writes would wait for the standby too.
const annals = stack.use(await startTestApp({ databaseUrl, role: 'api', timeoutFactor: 1 }))
const company = await annals.createCompany()
const { workspaceKey: key } = company

const send = (idempotencyKey: string, app: TestApp = annals) =>
  app.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a', idempotencyKey } })

/** Runs a call while no standby confirms commits, and cancels the wait as an operator would. */
async function callUnconfirmed(
  application: string,
  run: () => Promise<TestResponse>,
): Promise<TestResponse> {
  await waitForStandby(engine.connection, 'ghost')
  let isSettled = false
  const call = run().finally(() => (isSettled = true))
  let canceled = 0
  await eventually(async () => {
    // Repeat, because one call can commit more than once.
    canceled += await cancelWaits(engine.connection, application)
    assert(isSettled, 'the call is still waiting')
  })
  const response = await call
  assert(canceled > 0, `no commit waited for the standby: ${response.text}`)
  await waitForStandby(engine.connection, '')
  return response
}

function assertUnknown({ status, json, headers }: TestResponse): void {
  assert.deepEqual([status, json.code], [503, 'unavailable'])
  assert.equal(headers.get('retry-after'), '1')
}

afterEach(async () => {
  await waitForStandby(engine.connection, '')
  await eventually(async () => assert.equal((await annals.call('GET', '/ready')).status, 200))
})

test('an event whose wait for the standby was canceled is not acknowledged', async () => {
  assert.equal((await send('before')).status, 201)
  assertUnknown(await callUnconfirmed('annals writer', () => send('first')))
  // The event is stored on this server. Replaying the key returns its id.
  const again = await eventually(async () => {
    const response = await send('first')
    assert.equal(response.status, 200)
    return response
  })
  assert.equal(again.headers.get('x-idempotent-replay'), 'true')
})

test('an unconfirmed event is not acknowledged if the role receives only errors', async () => {
  const { user } = engine.connection
  await query(engine.connection, `alter role ${user} set client_min_messages = error`)
  try {
    await using other = await startTestApp({ databaseUrl, role: 'api' })
    assertUnknown(await callUnconfirmed('annals writer', () => send('quiet', other)))
  } finally {
    await query(engine.connection, `alter role ${user} reset client_min_messages`)
  }
})

test('an unconfirmed event that was stored under a lock is not acknowledged', async () => {
  await using other = await startTestApp({ databaseUrl, role: 'api' })
  assert.equal((await send('mine')).status, 201)
  // The other node moves the head, so that this one takes the lock.
  assert.equal((await send('theirs', other)).status, 201)
  assertUnknown(await callUnconfirmed('annals writer', () => send('locked')))
  await eventually(async () => assert.equal((await send('locked')).status, 200))
})

test('an unconfirmed replay is not acknowledged', async () => {
  assert.equal((await send('replayed')).status, 201)
  assertUnknown(await callUnconfirmed('annals writer', () => send('replayed')))
})

test('unconfirmed changes in the dashboard and the API are not acknowledged', async () => {
  const owner = await signInAs(annals, company, 'OWNER')
  assertUnknown(
    await callUnconfirmed('annals', () =>
      owner.call('POST', '/dashboard/workspaces', { body: { name: 'Staging' } }),
    ),
  )
  assertUnknown(
    await callUnconfirmed('annals', () =>
      annals.call('POST', '/v1/exports', { key, body: { source: 'HOT', format: 'CSV' } }),
    ),
  )
})

test('does not report success for a migration that no standby has confirmed', async () => {
  const known = readMigrations()
  const next = { version: known.length + 1, name: 'next', oldestProgram: 1, sql: 'select 1' }
  const run = () =>
    migrate({
      connection: engine.connection,
      logger: createLogger('silent'),
      migrations: [...known, next],
    })
  await waitForStandby(engine.connection, 'ghost')
  const refused = assert.rejects(run(), (error) => {
    assert(error instanceof OperatorError, String(error))
    return /no synchronous standby confirmed it/.test(error.message)
  })
  await eventually(async () => {
    assert.equal(await cancelWaits(engine.connection, 'annals migrate'), 1)
  })
  await refused
  await waitForStandby(engine.connection, '')
  assert.deepEqual(await run(), { applied: 0 })
})

test('while no standby confirms, the node is not ready and rejects events immediately', async () => {
  await waitForStandby(engine.connection, 'ghost')
  await eventually(async () => {
    assert.equal((await annals.call('GET', '/ready')).status, 503)
  })
  assertUnknown(await within(1_000, send('late')))
  assert.equal((await annals.call('GET', '/v1/events', { key })).status, 200)
  await waitForStandby(engine.connection, '')
  await eventually(async () => assert.equal((await send('late')).status, 201))
})
