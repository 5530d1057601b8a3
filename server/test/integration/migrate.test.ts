import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { test } from 'node:test'
import { Client } from 'pg'
import { pino } from 'pino'
import { OperatorError } from '../../src/errors.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { migrate, type Migration, readMigrations } from '../../src/platform/pg/migrate.ts'
import { Database, sqlStateOf } from '../../src/platform/pg/database.ts'
import type { Server } from '../../src/platform/pg/server-address.ts'
import { schemaText } from '../../tools/print-schema.ts'
import { runAnnals } from '../harness/app/annals-process.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { cloneDatabase, createEmptyDatabase } from '../harness/database/template-db.ts'

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

/** The message for the operator. */
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

/** The SHA-256 of each migration, in order. Add a new one with its migration. */
const RELEASED = [
  'a1ac997f3d6cb40f8b1c06584d0708522b68086ca0ba19d77dd3b4f7d93de40a',
  'bc29a254b2d53b58848b840e2a7807d1c44c6e7b58b6ba33ffa04c9e7cf00839',
  '8e09857d73baaf3a1959de1cf8216851b0dc5d111af03202a8f0aeb4d0fb24e5',
  '672aca7f0e9a885146f9ba6290ee15f40a82faaf7526d0ed4b38cf9914098931',
  '3dc4d514f52b600f35815db891a34cab2a8053fbfbaa8c83ffc091c03d82a92b',
  '772361f802b194d69db69522c0416ee842a2234657cf319ab3b880e80ac9ce7e',
  'c2f27102b0491aa09941f2125d26e5482d1e66cd69a4309172251b8f3a6ce588',
  '45678f66870096e9224f71b049dbd59a6f89f3ada3f21ea8b280936afc6bb6fd',
  '2116ad3b55dcba14ea5248dcaa4c8aced7d271ce9d3625c4b0856811af14923b',
  '2e1f87049a55c23baa657ad827563737112d7e63da389ab7e6e0b7fc06e4542a',
  '0d0b6a9fcda0fe8d9bc171f9097735768864edfcb73a9a5356557e1d2040b837',
  'b6c5a475af034f42debb11a46b9a5bfeb556ca362208bbe2c2f7f72c5a436737',
  'a48eb8a6d0cb9f657fde220ae65b6df16808bf6b94f17a508c07aaa6ddf74478',
  '30cc11ebd60cd3dbe4a93d1b2a880dc87128d588101238644270de5b9c65f628',
  'aadf9b60be764150edf4a0a151e390415f545aa8edf3b4cff743035c1c568e6d',
  '4c90dfe4e5e06eea91cf149fde1ed70d732b3a939223c5da1b4f72ca362e7a22',
  'c3330195aff53eebf2a1a32f3755a4c907918a2e5566259281dcf234bad3fbef',
  'd8a0b18b555e3911e477327f7d608f66aab876493d31abd051986923cd630163',
  '2db8e23ac9f8b7561246f01abc71c06ee435cb3f2c07f258f3e9e804a8af41e7',
  '7140fdc13a23989b37391b1e8255cd3b472c44c6099fcaa88189439e78644b1b',
  '124055adfffe4a07fd237721e0be42df95b4f7962301309eeec11c492c041d4c',
  '0c91f7dd94dd9b39cbc16d2339def0deec50470aa91debba58a437617e014d1a',
  '215c142bd9cf049fd74f55983d269e73aee134252f184be4428135c1259c8218',
  '6786606d6ca818b22bd5ce11cedeb410671983f698fec0ea5dc1d5a17d91ec04',
  '10e0ee232d7f7e670fde38d427f6ee521ffe213d1185b5fc3603dad0fb2dd9be',
  '5abd8aa750f11fef01a86e029b42ea2d3f27781d328c3a6b1d3789867a9e29f0',
  '3ca515aad6e690e78413741a92c5b03909ed8cf0b63b87eb14b30f8e2e8d35ff',
  '0dcff857560851327e982e9285811cbbf49e6365ead383d9ab2b1003f59f74f8',
  '0a33eddacd5685541217358eaf6e159570d46e2ec585939c658492899240566a',
  '16e6a8f670b3abe9be0e5bc9eb65ecbce1d4bbb1f4ff2278613998c96a84a0a4',
]

test('a migration is never edited, not even its comments, because existing databases would reject it', () => {
  assert.deepEqual(
    readMigrations().map(({ sql }) => hash('sha256', sql)),
    RELEASED,
  )
})

test('an upgrade moves the error of an open export to its last attempt, and keeps that of an ended one', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  const known = readMigrations()
  await migrate({ connection, logger, migrations: known.filter(({ version }) => version <= 8) })
  await query(
    connection,
    `with owner as (
       insert into company (id, name, plan, allowlist)
       values (gen_random_uuid(), 'Acme', 'PRO', '{}') returning id)
     insert into export_job (company_id, id, source, format, filters, ranges, row_limit, status,
                             error_code, failure_summary, created_at, finished_at, expires_at)
     select id, gen_random_uuid(), 'HOT', 'CSV', '{}', '[]', 1, status,
            code, 'A test.', '2026-01-01Z', ended, '2026-01-08Z'
       from owner, (values ('FAILED', 'expired', timestamptz '2026-01-08Z'),
                           ('RUNNING', 'storage_unavailable', null)) as job (status, code, ended)`,
  )
  await migrate({ connection, logger })
  const columns = `error_code, failure_summary, last_attempt_code, last_attempt_summary,
                   last_attempt_at = created_at`
  const ended = ['expired', 'A test.', null, null, null]
  const open = [null, null, 'storage_unavailable', 'A test.', true]
  assert.deepEqual(
    await query(connection, `select ${columns} from export_job order by status`),
    [ended, open].flat(),
  )
})

test('an upgrade leaves existing keys without a limit, and the database refuses unknown permissions', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  const known = readMigrations()
  await migrate({ connection, logger, migrations: known.filter(({ version }) => version <= 9) })
  await query(
    connection,
    `with owner as (
       insert into company (id, name, plan, allowlist)
       values (gen_random_uuid(), 'Acme', 'PRO', '{}') returning id)
     insert into api_key (id, company_id, kid, secret_hash, scope, name)
     select gen_random_uuid(), id, 'kid', sha256(''), 'COMPANY', 'Old' from owner`,
  )
  await migrate({ connection, logger })
  assert.deepEqual(await query(connection, 'select permissions from api_key'), [null])
  for (const bad of ['{}', '{events:delete}', '{events:read,x}', '{NULL}']) {
    const change = query(connection, `update api_key set permissions = '${bad}'`)
    await assert.rejects(change, /api_key_permissions_check/, bad)
  }
  await query(connection, `update api_key set permissions = '{events:read}'`)
})

test('a program older than a migration allows refuses to start and changes nothing', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  const breaking = migration(2, 'create table second (id integer)', 2)
  await migrate({ connection, logger, migrations: [FIRST, breaking] })
  const message = await refusal(migrate({ connection, logger, migrations: [FIRST] }))
  assert.match(message, /migration 2 \(step_2\).*knows migration 2; this one knows 1.*Upgrade/)
  assert.deepEqual(await versionsIn(connection), [1, 2])
})

test('a newer schema that still allows this program is accepted', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  await migrate({ connection, logger, migrations: [FIRST, SECOND] })
  assert.deepEqual(await migrate({ connection, logger, migrations: [FIRST] }), { applied: 0 })
})

/** A single line, without a stack trace. */
const UNRELEASED =
  /^annals: The database was created by an unreleased version.* export them .* POST \/v1\/events\/batch\. Nothing was changed\.\n$/

test('rejects a migration that has changed since it was applied', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  const known = readMigrations()
  // Older versions of the texts, and more migrations than this program has.
  const unreleased = [
    ...known.map((own) => ({ ...own, sql: `${own.sql}\n-- before the release` })),
    migration(known.length + 1, 'create table later (id integer)'),
  ]
  await migrate({ connection, logger, migrations: unreleased })
  const contents = async () => ({
    schema: await schemaText(connection),
    versions: await query(connection, 'select m::text from schema_migration m order by version'),
  })
  const before = await contents()
  for (const command of ['migrate', 'serve']) {
    const { code, stderr } = await runAnnals([command], {
      ANNALS_DATABASE_URL: database.url,
      ANNALS_SECRET_KEY: Buffer.alloc(32).toString('base64'),
      ANNALS_PORT: '0',
    })
    assert.equal(code, 1, command)
    assert.match(stderr, UNRELEASED)
  }
  assert.deepEqual(await contents(), before)
})

test('a failing migration is rolled back, and earlier ones stay', async () => {
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

test('a migration that dies halfway is repeated by the next program', async () => {
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
  test(`a network that goes silent at "${statement}" ends the migration within seconds, with a clear message`, async () => {
    await using database = await createEmptyDatabase()
    await using proxy = await PgProxy.listen(database.connection)
    const through = { ...database.connection, host: '127.0.0.1', port: proxy.port }
    proxy.cutOnceAt(statement, 'silent')
    const message = await refusal(
      within(8_000, migrate({ connection: through, logger, migrations: [FIRST, SECOND] })),
    )
    assert.match(message, /^Can't reach the database: .*\.$/)
    // The silent session no longer holds the lock.
    const { connection } = database
    await within(8_000, migrate({ connection, logger, migrations: [FIRST, SECOND] }))
    assert.deepEqual(await versionsIn(connection), [1, 2])
  })
}

test('a migration that runs longer than the connection checks is not aborted', async () => {
  await using database = await createEmptyDatabase()
  const { connection } = database
  const slow = migration(2, 'select pg_sleep(2.5); create table second (id integer)')
  assert.deepEqual(await migrate({ connection, logger, migrations: [FIRST, slow] }), { applied: 2 })
})

test('a start that finds the migration lock taken reports the holder once, and ends after its timeout', async () => {
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

test('rejects a server before PostgreSQL 15 with a clear message, without creating anything', async () => {
  await using database = await createEmptyDatabase()
  await using proxy = await PgProxy.listen(database.connection)
  const [version] = await query(database.connection, 'show server_version_num')
  assert(typeof version === 'string' && /^\d{6}$/.test(version))
  proxy.rewriteResponses(version, `14${version.slice(2)}`)
  const connection = { ...database.connection, host: '127.0.0.1', port: proxy.port }
  const message = await refusal(migrate({ connection, logger }))
  assert.match(message, /The database runs PostgreSQL .*\. Annals requires 15 or later/)
  assert.deepEqual(await tablesIn(database.connection), [])
})

test('reports a database that is unreachable, unknown or denies access with a clear message', async () => {
  await using database = await createEmptyDatabase()
  await using proxy = await PgProxy.listen(database.connection)
  const tcp = { ...database.connection, host: '127.0.0.1', port: proxy.port }
  const refuse = (connection: Server) => refusal(migrate({ connection, logger }))
  assert.match(
    await refuse({ ...tcp, password: 'wrong' }),
    /^The database refused the login: .*\.$/,
  )
  assert.match(
    await refuse({ ...tcp, database: 'none' }),
    /^The database returned an error: .*"none" does not exist\.$/,
  )
  assert.match(await refuse({ ...tcp, port: 1 }), /^Can't reach the database: .*ECONNREFUSED.*\.$/)
  assert.match(
    await refuse({ ...tcp, host: 'no.such.host.invalid' }),
    /^Can't reach the database: /,
  )
  proxy.mode = 'refuse'
  assert.match(await refuse(tcp), /^Can't reach the database: .*\.$/)
  proxy.mode = 'stall'
  assert.match(await refuse(tcp), /^Can't reach the database: .*\.$/)
})

test('stops waiting for a server that does not start in time, with a clear message', async () => {
  await using database = await createEmptyDatabase()
  const connection = { ...database.connection, host: '127.0.0.1', port: 1 }
  const lines: { event: string }[] = []
  const noting = pino({}, { write: (line) => void lines.push(JSON.parse(line)) })
  const waiting = migrate({ connection, logger: noting, serverWaitMsMax: 700 })
  assert.match(await refusal(waiting), /^Can't reach the database: .*ECONNREFUSED.*\.$/)
  assert.deepEqual(
    lines.map(({ event }) => event),
    ['database.waiting'],
  )
})

/** Access of members, old notices and finished deliveries, and what nodes share, which are not evidence. */
const MAY_LOSE_ROWS: ReadonlySet<string> = new Set([
  'app_user',
  'user_workspace',
  'user_session',
  'one_time_link',
  'second_factor',
  'sign_in_challenge',
  'user_identity',
  'used_sign_in',
  'group_mapping',
  'explorer_view',
  'export_template',
  'export_schedule',
  'export_job',
  'verify_run',
  'notice',
  'notice_cause',
  'notice_read',
  'notice_mail',
  'notice_mail_off',
  'webhook',
  'webhook_delivery',
  'rollup_head',
  'event_rollup',
  'event_value',
  'event_value_block',
  'event_field',
  'event_day',
  'checkpoint_day',
  'node',
  'shared_rate',
])

test('the serving role cannot drop, alter, truncate or create tables', async () => {
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
