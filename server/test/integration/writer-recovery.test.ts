import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { Client } from 'pg'
import { eventually } from '../harness/timing/eventually.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const annals = stack.use(await startTestApp())
const { workspaceKey: key } = await annals.createCompany()
const admin = new Client(annals.database.connection)
await admin.connect()
stack.defer(() => admin.end())

const body = { category: 'c', action: 'a' }
const send = (app: TestApp = annals) => app.call('POST', '/v1/events', { key, body })
const statusOf = async (path: string) => (await annals.call('GET', path, { key })).status

/**
 * From here on, every statement that writes to the chain heads fails, whether or not it changes a
 * row.
 */
const EVERY_STATEMENT = 'before update on chain_head for each statement'

async function refuseWrites(sqlState: string, when: string = EVERY_STATEMENT): Promise<void> {
  await admin.query(`
    create function refuse_write() returns trigger language plpgsql as
      $$ begin raise exception 'refused' using errcode = '${sqlState}'; end $$;
    create trigger refuse ${when} execute function refuse_write()`)
}

/** Repeated, because it can deadlock with a statement of the service. */
const allowWrites = () =>
  eventually(() => admin.query('drop function if exists refuse_write cascade'))

afterEach(async () => {
  await allowWrites()
  await admin.query('grant insert on event, idempotency_key to annals_serving')
  await admin.query('grant insert, update on chain_head to annals_serving')
  await eventually(async () => assert.equal(await statusOf('/ready'), 200))
})

test('later appends succeed after an append failed', async () => {
  // The first append on its connection fails after the server has parsed it.
  await using own = await startTestApp({ databaseUrl: annals.database.url })
  await refuseWrites('25006')
  assert.equal((await send(own)).status, 503)
  await allowWrites()
  await eventually(async () => assert.equal((await send(own)).status, 201))
})

test('later appends succeed after the first one was canceled', async () => {
  await using own = await startTestApp({ databaseUrl: annals.database.url })
  // A lock on the heads delays it, so that it can be canceled after the server has parsed it.
  await admin.query('begin; select from chain_head for update')
  const canceled = send(own)
  const other = new Client(annals.database.connection)
  await other.connect()
  await eventually(async () => {
    const { rowCount } = await other.query(
      `select pg_cancel_backend(pid) from pg_stat_activity
        where application_name = 'annals writer' and wait_event_type = 'Lock'
          and datname = current_database()`,
    )
    assert.equal(rowCount, 1)
  })
  await other.end()
  assert.equal((await canceled).status, 503)
  await admin.query('rollback')
  await eventually(async () => assert.equal((await send(own)).status, 201))
})

test('a locked chain head rejects events of its workspace, and delays no others for long', async () => {
  const locked = await annals.createCompany()
  const sendLocked = () => annals.call('POST', '/v1/events', { key: locked.workspaceKey, body })
  assert.equal((await send()).status, 201)
  assert.equal((await sendLocked()).status, 201)
  const lock = new Client(annals.database.connection)
  await lock.connect()
  await using _ended = { [Symbol.asyncDispose]: () => lock.end() }
  await lock.query('begin')
  await lock.query('select from chain_head where workspace_id = $1 for update', [
    locked.workspace.id,
  ])
  const [first, ...others] = await Promise.all([sendLocked(), send(), send()])
  assert.deepEqual([first.status, first.json.code], [503, 'overloaded'])
  assert.equal(first.headers.get('retry-after'), '1')
  for (const { status, text } of others) assert.equal(status, 201, text)
  // From now on the lock is known, and no batch waits for it.
  for (let round = 0; round < 20; round += 1) {
    const [refused, stored] = await Promise.all([sendLocked(), send()])
    assert.deepEqual([refused.status, stored.status], [503, 201], refused.text)
  }
  assert.equal(await statusOf('/ready'), 200)
  const { rows } = await admin.query(
    `select pid from pg_stat_activity
      where application_name = 'annals writer' and datname = current_database()`,
  )
  assert.equal(rows.length, 1)
  await lock.query('rollback')
  await eventually(async () => assert.equal((await sendLocked()).status, 201))
})

for (const [sqlState, what] of [
  ['25006', 'is read-only'],
  ['53100', 'has a full disk'],
] as const) {
  test(`while the database ${what}, an idle node is not ready, and queries keep working`, async () => {
    await refuseWrites(sqlState)
    await eventually(async () => assert.equal(await statusOf('/ready'), 503))
    const refused = await send()
    assert.deepEqual([refused.status, refused.json.code], [503, 'unavailable'])
    assert.equal(refused.headers.get('retry-after'), '1')
    assert.equal(await statusOf('/v1/events'), 200)
    assert.deepEqual((await annals.call('GET', '/health')).json, { ok: true })
    await allowWrites()
    await eventually(async () => assert.equal(await statusOf('/ready'), 200))
    assert.equal((await send()).status, 201)
  })
}

for (const table of ['event', 'idempotency_key', 'chain_head']) {
  test(`a role that can no longer write to ${table} takes the node out of service, without any event`, async () => {
    await admin.query(`revoke insert, update on ${table} from annals_serving`)
    await eventually(async () => assert.equal(await statusOf('/ready'), 503))
    assert.equal((await send()).status, 503)
    assert.equal(await statusOf('/ready'), 503)
    const rights = table === 'chain_head' ? 'insert, update' : 'insert'
    await admin.query(`grant ${rights} on ${table} to annals_serving`)
    await eventually(async () => assert.equal(await statusOf('/ready'), 200))
    assert.equal((await send()).status, 201)
  })
}

test('appends that fail for a reason that no probe detects keep the node out of service for longer and longer', async () => {
  // For each row, so that a statement without rows doesn't fire it.
  await refuseWrites('XX000', 'before insert on event for each row')
  const failedAtMs: number[] = []
  await eventually(async () => {
    const { status, json } = await send()
    assert.equal(status, 503)
    // Skip those that were refused immediately.
    if (/did not confirm/.test(json.error)) {
      failedAtMs.push(performance.now())
      assert.equal(await statusOf('/ready'), 503)
    }
    assert(failedAtMs.length >= 4)
  })
  const [, , third = 0, fourth = 0] = failedAtMs
  assert(fourth - third > 900, `retried after ${Math.round(fourth - third)} ms`)
  await allowWrites()
  await eventually(async () => assert.equal((await send()).status, 201))
})

test('a server without a free connection for the probe does not take a healthy writer down', async () => {
  await using proxy = await PgProxy.listen(annals.database.connection)
  await using own = await startTestApp({ databaseUrl: proxy.urlTo(annals.database.connection) })
  const isReady = async () => (await own.call('GET', '/ready')).status
  const terminate = (name: string) =>
    admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = $1 and datname = current_database()`,
      [name],
    )
  // Repeated, because a probe that is terminated while it runs takes the writer down.
  await eventually(async () => {
    proxy.fullFor = null
    await eventually(async () => assert.equal((await send(own)).status, 201))
    proxy.fullFor = 'annals write'
    const refusals = proxy.fullRefusals
    await terminate('annals write probe')
    await eventually(() => assert(proxy.fullRefusals >= refusals + 2))
    assert.equal(await isReady(), 200)
  })
  assert.equal((await send(own)).status, 201)

  // Without its own connection, the writer can't write either.
  await terminate('annals writer')
  await eventually(async () => assert.equal(await isReady(), 503))
  proxy.fullFor = null
  await eventually(async () => assert.equal((await send(own)).status, 201))
})

test('a node whose writer finds no free connection stays out of service, even if its probe has one', async () => {
  await using proxy = await PgProxy.listen(annals.database.connection)
  await using own = await startTestApp({ databaseUrl: proxy.urlTo(annals.database.connection) })
  const isReady = async () => (await own.call('GET', '/ready')).status
  assert.equal((await send(own)).status, 201)
  proxy.fullFor = 'annals writer'
  await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'annals writer' and datname = current_database()`,
  )
  await eventually(async () => assert.equal((await send(own)).status, 503))
  const refusals = proxy.fullRefusals
  await eventually(async () => {
    assert.equal(await isReady(), 503)
    assert(proxy.fullRefusals >= refusals + 3, `${proxy.fullRefusals} refusals`)
  })
  proxy.fullFor = null
  await eventually(async () => assert.equal((await send(own)).status, 201))
})

test('a node whose writer has no connection yet is ready only once it has one', async () => {
  await using proxy = await PgProxy.listen(annals.database.connection)
  proxy.fullFor = 'annals writer'
  await using own = await startTestApp({ databaseUrl: proxy.urlTo(annals.database.connection) })
  const isReady = async () => (await own.call('GET', '/ready')).status
  assert.equal(await isReady(), 503)
  proxy.fullFor = null
  await eventually(async () => assert.equal(await isReady(), 200))

  // The same when an idle writer loses its connection.
  proxy.fullFor = 'annals writer'
  await admin.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'annals writer' and datname = current_database()`,
  )
  await eventually(async () => assert.equal(await isReady(), 503))
  proxy.fullFor = null
  await eventually(async () => assert.equal(await isReady(), 200))
  assert.equal((await send(own)).status, 201)
})

test('detects when a server becomes read-only, and when it becomes writable again', async () => {
  const setReadOnly = async (value: 'on' | 'off') => {
    const { database } = annals.database.connection
    await admin.query(`alter database ${database} set default_transaction_read_only = ${value}`)
    // Takes effect on new connections.
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where application_name like 'annals write%' and datname = current_database()`,
    )
  }
  await setReadOnly('on')
  await eventually(async () => assert.equal(await statusOf('/ready'), 503))
  assert.equal((await send()).status, 503)
  await setReadOnly('off')
  await eventually(async () => assert.equal((await send()).status, 201))
})

test('the write probe leaves nothing behind', async () => {
  const sizes = async () => {
    const { rows } = await admin.query<{ dead: string; size: string }>(`
      select sum(n_dead_tup + n_live_tup) as dead, pg_relation_size('chain_head') as size
        from pg_stat_user_tables where relname = 'chain_head'`)
    return rows[0]
  }
  const probes = async () => {
    const { rows } = await admin.query<{ count: string }>(
      `select temp_files as count from pg_stat_database where datname = current_database()`,
    )
    return Number(rows[0]?.count)
  }
  // Repeated, because PostgreSQL can count the rows of earlier tests late.
  await eventually(async () => {
    const before = await sizes()
    const countBefore = await probes()
    await eventually(async () => assert((await probes()) > countBefore))
    assert.deepEqual(await sizes(), before)
  })
})

test('a limit on temporary files does not look like a full disk', async () => {
  await using limited = await cloneDatabase()
  await admin.query(`alter database ${limited.connection.database} set temp_file_limit = 0`)
  await using own = await startTestApp({ databaseUrl: limited.url })
  const { status } = await own.call('GET', '/ready')
  assert.equal(status, 200)
})

test('a worker node has no writer and does not probe', async () => {
  await using own = await startTestApp({ role: 'worker' })
  await using other = await startTestApp({ role: 'api', databaseUrl: own.database.url })
  const sessions = async () => {
    const { rows } = await admin.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity
        where application_name like 'annals write%' and datname = $1`,
      [own.database.connection.database],
    )
    return rows[0]?.count
  }
  // The writer and the probe of the other node show that the query would find them.
  await eventually(async () => assert.equal(await sessions(), 2))
  await other[Symbol.asyncDispose]()
  await eventually(async () => assert.equal(await sessions(), 0))
})
