import assert from 'node:assert/strict'
import { after, afterEach, test } from 'node:test'
import { Client } from 'pg'
import { eventually } from '../harness/eventually.ts'
import { startTestApp, type TestApp } from '../harness/start-app.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const annals = stack.use(await startTestApp())
const { workspaceKey: key } = await annals.found()
const admin = new Client(annals.database.connection)
await admin.connect()
stack.defer(() => admin.end())

const body = { category: 'c', action: 'a' }
const send = (app: TestApp = annals) => app.call('POST', '/v1/events', { key, body })
const statusOf = async (path: string) => (await annals.call('GET', path, { key })).status

/** Makes every write to the chain heads fail, whether or not it changes a row. */
async function refuseWrites(sqlState: string): Promise<void> {
  await admin.query(`
    create function refuse_write() returns trigger language plpgsql as
      $$ begin raise exception 'refused' using errcode = '${sqlState}'; end $$;
    create trigger refuse before update on chain_head for each statement execute function refuse_write()`)
}

const allowWrites = () => admin.query('drop function if exists refuse_write cascade')

afterEach(async () => {
  await allowWrites()
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
        where application_name = 'annals writer' and wait_event_type = 'Lock'`,
    )
    assert.equal(rowCount, 1)
  })
  await other.end()
  assert.equal((await canceled).status, 503)
  await admin.query('rollback')
  await eventually(async () => assert.equal((await send(own)).status, 201))
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

test('detects when a server becomes read-only and when it becomes writable again', async () => {
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
  const before = await sizes()
  const countBefore = await probes()
  await eventually(async () => assert((await probes()) > countBefore))
  assert.deepEqual(await sizes(), before)
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
  // The probe of the other node shows that the query would find one.
  await eventually(async () => assert.equal(await sessions(), 1))
  await other[Symbol.asyncDispose]()
  await eventually(async () => assert.equal(await sessions(), 0))
})
