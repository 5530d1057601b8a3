import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { Client } from 'pg'
import { pino } from 'pino'
import { OperatorError } from '../../src/errors.ts'
import { withDeadline } from '../../src/platform/deadline.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { migrate, type Migration, readMigrations } from '../../src/platform/migrate.ts'
import { Database, sqlStateOf } from '../../src/platform/pg.ts'
import type { Server } from '../../src/platform/pg-address.ts'
import { eventually } from '../harness/eventually.ts'
import { PgProxy } from '../harness/pg-proxy.ts'
import { cloneDatabase, createEmptyDatabase } from '../harness/template-db.ts'

const logger = createLogger('silent')

function migration(version: number, sql: string, oldestProgram = 1): Migration {
  return { version, name: `step_${version}`, oldestProgram, sql }
}

const FIRST = migration(1, 'create table first (id integer)')
const SECOND = migration(2, 'create table second (id integer)')

async function query(connection: Server, text: string): Promise<unknown[]> {
  const client = new Client(connection)
  await client.connect()
  try {
    return (await client.query({ text, rowMode: 'array' })).rows.flat()
  } finally {
    await client.end()
  }
}

const versionsIn = (connection: Server) =>
  query(connection, 'select version from schema_migration order by version')
const tablesIn = (connection: Server) =>
  query(
    connection,
    `select table_name from information_schema.tables where table_schema = 'public' order by 1`,
  )

/** The sentence an operator is told. */
async function refusal(work: Promise<unknown>): Promise<string> {
  const error: unknown = await work.then(
    () => null,
    (reason: unknown) => reason,
  )
  assert(error instanceof OperatorError, String(error))
  return error.message
}

test('twenty programs that start at once on an empty database apply each migration once', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  const results = await Promise.all(
    Array.from({ length: 20 }, () => migrate({ connection, logger })),
  )
  const known = readMigrations()
  assert.deepEqual(
    results.map(({ applied }) => applied).filter((applied) => applied > 0),
    [known.length],
  )
  assert.deepEqual(
    await versionsIn(connection),
    known.map(({ version }) => version),
  )
  assert.deepEqual(await migrate({ connection, logger }), { applied: 0 })
})

test('migrations are numbered without a gap, and each names the oldest program it allows', () => {
  for (const [index, { version, oldestProgram }] of readMigrations().entries()) {
    assert.equal(version, index + 1)
    assert(oldestProgram >= 1 && oldestProgram <= version)
  }
})

/** The SHA-256 of each, in their order; a new one is added with its migration. */
const RELEASED = [
  '3566f48b1e926e9b1afff45905c4ad7631315421a2c826546eec5f8d659d914c',
  'aba53451675daadb015e8a6fe05370366f9a8e9d282e78ce7747c91925e2581a',
  '78ec4ce386230fa392bb4170cf4711628ecad9b65bf8cc7b220ef67cd141421e',
  '3951c12240fa1faeaba051175f2dc68a53f48f2f977718c053f11767fa69d332',
  '420c490fcec9013e3d93b9204f21c70b5353e0d0bbf3b0f21a22de7a2dda1d86',
  'a839c0e132d5669130b0a58d89201e93c22f300b0acd2892ea726cce1955a0de',
  '94986226c730d94e1eb35d6e18413b1feaa14e265b68594081dfa7ec85d3050c',
  'c61b33015f1e551fec8b98de92122e790056d9dcdc70ad23d0157becdc67544d',
  '6debf96a951b4b9ab7a6ab7d9ad642052d576d9e83800ed9a49bfb376bf8d212',
  'dd53848e53b4acf00f18a3a173bb3e201e19597bbba558aa3e73a8f71f899052',
  '9ded55e9a643593ee8e3f5040ee92c9897ca06c85384556b169a261d35986199',
  '442b81c98570e277d55041ca1fe0a814d2b6d74374548d5495e378d2e782f08e',
  '03d8763321138af8569c5c8ffa1dc2f09a44c11ef0cacaf906ccbfd1c3d0ce7e',
]

test('a migration is never edited, not even its comments: databases that have it would be refused', () => {
  assert.deepEqual(
    readMigrations().map(({ sql }) => hash('sha256', sql)),
    RELEASED,
  )
})

test('a program older than a migration allows refuses to start, and changes nothing', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  const breaking = migration(2, 'create table second (id integer)', 2)
  await migrate({ connection, logger, migrations: [FIRST, breaking] })
  const message = await refusal(migrate({ connection, logger, migrations: [FIRST] }))
  assert.match(message, /migration 2 \(step_2\).*schema 2 or newer; this one has 1.*Upgrade/)
  assert.deepEqual(await versionsIn(connection), [1, 2])
})

test('a newer schema that still allows this program is accepted', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  await migrate({ connection, logger, migrations: [FIRST, SECOND] })
  assert.deepEqual(await migrate({ connection, logger, migrations: [FIRST] }), { applied: 0 })
})

test('a migration whose text has changed since it was applied is refused', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  await migrate({ connection, logger, migrations: [FIRST] })
  const changed = migration(1, `${FIRST.sql} -- with another thought`)
  const message = await refusal(migrate({ connection, logger, migrations: [changed, SECOND] }))
  assert.match(message, /migration 1 \(step_1\) was applied with another text/)
  assert.deepEqual(await versionsIn(connection), [1])
})

test('a failing migration leaves nothing half-done, and what came before it stays', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  const failing = migration(2, 'create table half (id integer); select 1 / 0;')
  await assert.rejects(
    migrate({ connection, logger, migrations: [FIRST, failing, migration(3, 'select 1')] }),
    /division by zero/,
  )
  assert.deepEqual(await versionsIn(connection), [1])
  assert.deepEqual(await tablesIn(connection), ['first', 'schema_migration'])
  assert.deepEqual(await migrate({ connection, logger, migrations: [FIRST, SECOND] }), {
    applied: 1,
  })
})

test('a migrator that dies in the midst of a migration leaves it to the next', async () => {
  await using database = await createEmptyDatabase()
  await using proxy = await PgProxy.listen(database.connection)
  const through = { ...database.connection, host: '127.0.0.1', port: proxy.port }
  proxy.cutOnceAt('create table second', 'before')
  await assert.rejects(migrate({ connection: through, logger, migrations: [FIRST, SECOND] }))
  const { connection } = database
  assert.deepEqual(await migrate({ connection, logger, migrations: [FIRST, SECOND] }), {
    applied: 1,
  })
})

for (const statement of [
  'pg_advisory_lock',
  'insert into schema_migration',
  'create table second',
]) {
  test(`a network that goes silent at "${statement}" ends the migration within seconds, in one sentence`, async () => {
    await using database = await createEmptyDatabase()
    await using proxy = await PgProxy.listen(database.connection)
    const through = { ...database.connection, host: '127.0.0.1', port: proxy.port }
    proxy.cutOnceAt(statement, 'silent')
    const message = await refusal(
      within(8_000, migrate({ connection: through, logger, migrations: [FIRST, SECOND] })),
    )
    assert.match(message, /^cannot reach the database: .*\.$/)
    // The silent session no longer holds the lock.
    const { connection } = database
    await within(8_000, migrate({ connection, logger, migrations: [FIRST, SECOND] }))
    assert.deepEqual(await versionsIn(connection), [1, 2])
  })
}

test('a migration that runs longer than the checks of the connection is not ended', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  const slow = migration(2, 'select pg_sleep(2.5); create table second (id integer)')
  assert.deepEqual(await migrate({ connection, logger, migrations: [FIRST, slow] }), { applied: 2 })
})

test('a start that finds the migration lock taken reports the holder once, and ends after its limit', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  await using holder = await holdMigrationLock(connection)
  const lines: { event: string; pid: number }[] = []
  const noting = pino({ level: 'warn' }, { write: (line) => void lines.push(JSON.parse(line)) })
  const wait = { connection, logger: noting, migrations: [FIRST], lockAttemptMs: 100 }
  const message = await refusal(within(5_000, migrate({ ...wait, lockWaitMsMax: 500 })))
  assert.match(message, new RegExp(`migration lock.*pg_terminate_backend\\(${holder.pid}\\)`))
  assert.deepEqual(
    lines.map(({ event, pid }) => ({ event, pid })),
    [{ event: 'migration.waiting', pid: holder.pid }],
  )

  const waiting = migrate({ ...wait, lockWaitMsMax: 60_000 })
  await eventually(() => assert.equal(lines.length, 2))
  await holder[Symbol.asyncDispose]()
  assert.deepEqual(await within(5_000, waiting), { applied: 1 })
})

async function holdMigrationLock(connection: Server): Promise<AsyncDisposable & { pid: number }> {
  const client = new Client(connection)
  await client.connect()
  const { rows } = await client.query<{ pid: number }>(
    'select pg_backend_pid() as pid from pg_advisory_lock(4207001)',
  )
  let ended: Promise<void> | null = null
  return { pid: rows[0]?.pid ?? 0, [Symbol.asyncDispose]: () => (ended ??= client.end()) }
}

async function within<T>(timeoutMs: number, work: Promise<T>): Promise<T> {
  return await withDeadline(work, { timeoutMs, late: () => new Error(`over ${timeoutMs} ms`) })
}

test('a server before PostgreSQL 15 is refused with a sentence, and nothing is made on it', async () => {
  await using database = await createEmptyDatabase()
  await using proxy = await PgProxy.listen(database.connection)
  const [version] = await query(database.connection, 'show server_version_num')
  assert(typeof version === 'string' && /^\d{6}$/.test(version))
  proxy.rewriteAnswers(version, `14${version.slice(2)}`)
  const connection = { ...database.connection, host: '127.0.0.1', port: proxy.port }
  const message = await refusal(migrate({ connection, logger }))
  assert.match(message, /the database is PostgreSQL .*; Annals needs 15 or newer/)
  assert.deepEqual(await tablesIn(database.connection), [])
})

test('a database that cannot be reached, entered or found is told in one sentence', async () => {
  await using database = await createEmptyDatabase()
  await using proxy = await PgProxy.listen(database.connection)
  const tcp = { ...database.connection, host: '127.0.0.1', port: proxy.port }
  const refuse = (connection: Server) => refusal(migrate({ connection, logger }))
  assert.match(
    await refuse({ ...tcp, password: 'wrong' }),
    /^the database refused the login: .*\.$/,
  )
  assert.match(
    await refuse({ ...tcp, database: 'none' }),
    /^the database said: .*"none" does not exist\.$/,
  )
  assert.match(await refuse({ ...tcp, port: 1 }), /^cannot reach the database: .*ECONNREFUSED.*\.$/)
  assert.match(
    await refuse({ ...tcp, host: 'no.such.host.invalid' }),
    /^cannot reach the database: /,
  )
  proxy.mode = 'refuse'
  assert.match(await refuse(tcp), /^cannot reach the database: .*\.$/)
  proxy.mode = 'stall'
  assert.match(await refuse(tcp), /^cannot reach the database: .*\.$/)
})

/** Who may see which workspace, and deliveries that ended long ago: nothing that is evidence. */
const MAY_LOSE_ROWS: ReadonlySet<string> = new Set([
  'app_user',
  'user_workspace',
  'user_session',
  'one_time_link',
  'explorer_view',
  'export_template',
  'export_job',
  'verify_run',
  'webhook',
  'webhook_delivery',
  'rollup_head',
  'event_rollup',
  'event_value',
  'event_value_block',
  'event_field',
  'event_day',
])

test('the serving role cannot drop, alter, truncate or make tables', async () => {
  await using database = await cloneDatabase()
  await using serving = new Database({
    connection: database.connection,
    role: 'annals_serving',
    connectionsMax: 1,
    logger,
  })
  const tables = (await tablesIn(database.connection)).map(String)
  assert(tables.length >= 8)
  const statements = tables.flatMap((table) => [
    `drop table ${table} cascade`,
    `alter table ${table} add column extra integer`,
    `truncate ${table} cascade`,
    `create trigger mischief before insert on ${table} execute function suppress_redundant_updates_trigger()`,
    `delete from ${MAY_LOSE_ROWS.has(table) ? 'schema_migration' : table}`,
  ])
  for (const statement of [...statements, 'create table mine (id integer)']) {
    const error: unknown = await serving.pool.query(statement).catch((reason: unknown) => reason)
    assert.equal(sqlStateOf(error), '42501', statement)
  }
  const { rows } = await serving.pool.query('select current_user as name')
  assert.deepEqual(rows, [{ name: 'annals_serving' }])
})
