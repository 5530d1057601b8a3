import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from 'pg'
import { OperatorError } from '../../errors.ts'
import { confirmCommits, UnconfirmedCommitError } from './confirmed-commit.ts'
import type { Logger } from '../logger.ts'
import { type LockWait, acquireMigrationLock } from './migration-lock.ts'
import { refuseMovedLedger } from '../node/moved-ledger.ts'
import { isOutage, messageOf, sqlStateOf, SQLSTATE } from './pg-error.ts'
import {
  type Connection,
  PLAIN_SETTINGS,
  RefusedConnectionError,
  SCHEMA,
  serverListOf,
  UnfitServerError,
} from './servers.ts'
import { PgSession } from './pg-session.ts'
import { waitForServer } from './wait-for-server.ts'

export type Migration = {
  version: number
  name: string
  /** The lowest schema version that a program must know to run on a database with this migration. */
  oldestProgram: number
  sql: string
}

const FILE_NAME = /^(\d{6})_([a-z_]+)\.sql$/
const HEADER = /^-- oldest program: (\d+)$/m
const SERVER_VERSION_MIN = 150_000
/**
 * At startup we can wait longer for a busy server than a caller can. A dead network ends the wait within
 * six seconds, and a migration that the server is working on is never aborted.
 */
const TIMEOUTS = { connectMs: 5_000, probeEveryMs: 1_000, probeMs: 5_000 }
/** PostgreSQL's code for a role that doesn't exist: an invalid value for the setting `role`. */
const ROLE_UNKNOWN = '22023'
const SCHEMA_MISSING = '3F000'

const MIGRATIONS_DIR = join(import.meta.dirname, '../../../migrations')

export function readMigrations(folder: string = MIGRATIONS_DIR): Migration[] {
  return readdirSync(folder)
    .toSorted()
    .map((file, index) => {
      const [, digits, name] = FILE_NAME.exec(file) ?? []
      const sql = readFileSync(join(folder, file), 'utf8')
      const oldestProgram = HEADER.exec(sql)?.[1]
      if (!digits || !name || !oldestProgram || Number(digits) !== index + 1) {
        throw new Error(`${file} is not a migration: expected ${index + 1} as NNNNNN_noun.sql`)
      }
      return { version: Number(digits), name, oldestProgram: Number(oldestProgram), sql }
    })
}

/**
 * Migrates the database to this program's schema. Forward only, each migration in its own transaction. A
 * lock makes concurrent programs migrate one at a time, and the later ones find nothing to do.
 */
export async function migrate({
  connection,
  logger,
  migrations = readMigrations(),
  mayCreate = true,
  mayBeMoved = false,
  serverWaitMsMax = 0,
  signal,
  ...lockWait
}: LockWait & {
  connection: Connection
  logger: Logger
  migrations?: readonly Migration[]
  /** If false, a database without tables is an error. By default, the tables are created. */
  mayCreate?: boolean
  /** For `annals move`. By default, a ledger that was moved away, or is not complete, is an error. */
  mayBeMoved?: boolean
  /** How long to wait for a server that is starting. By default, that is an error. */
  serverWaitMsMax?: number
  signal?: AbortSignal | undefined
}): Promise<{ applied: number }> {
  await using session = new PgSession({
    connection: serverListOf(connection),
    settings: PLAIN_SETTINGS,
    name: 'annals migrate',
    workMsMax: null,
    timeouts: TIMEOUTS,
    signal,
  })
  try {
    await waitForServer(session, { serverWaitMsMax, logger, signal })
    return await session.use(async (client) => {
      await refuseOldServer(client)
      await acquireMigrationLock(client, logger, lockWait)
      if (!mayCreate) await refuseNoTables(client)
      if (!mayBeMoved) await refuseMovedLedger(client)
      return await applyMissing(client, migrations, logger)
    })
  } catch (error) {
    signal?.throwIfAborted()
    throw toMigrationError(error)
  }
}

/** What a start would find in a database. `isNewer`: a newer program has applied migrations. */
export type SchemaReport = { serverVersion: string; pending: Migration[]; isNewer: boolean }

/** Throws the sentence with which a start would refuse the database. Changes nothing, and waits for no lock. */
export async function inspectSchema(
  connection: Connection,
  migrations: readonly Migration[] = readMigrations(),
): Promise<SchemaReport> {
  await using session = new PgSession({
    connection: serverListOf(connection),
    settings: PLAIN_SETTINGS,
    name: 'annals doctor',
    workMsMax: null,
    timeouts: TIMEOUTS,
  })
  try {
    return await session.use(async (client) => {
      await client.query('begin read only')
      const serverVersion = await refuseOldServer(client)
      await refuseNoTables(client)
      await refuseOtherSchema(client)
      const present = await readPresent(client)
      refuseOtherMigrations(present, migrations)
      await refuseMovedLedger(client)
      await refuseMissingRoles(client)
      await client.query('rollback')
      const pending = migrations.filter(({ version }) => !present.has(version))
      const isNewer = [...present.keys()].some((version) => version > migrations.length)
      return { serverVersion, pending, isNewer }
    })
  } catch (error) {
    throw toMigrationError(error)
  }
}

async function applyMissing(
  client: Client,
  migrations: readonly Migration[],
  logger: Logger,
): Promise<{ applied: number }> {
  await refuseOtherSchema(client)
  await createMigrationTable(client)
  const present = await readPresent(client)
  refuseOtherMigrations(present, migrations)
  const missing = migrations.filter(({ version }) => !present.has(version))
  for (const migration of missing) {
    await apply(client, migration)
    logger.info({ event: 'migration.applied', version: migration.version, name: migration.name })
  }
  await refuseMissingRoles(client)
  return { applied: missing.length }
}

/** Returns the version of the server. */
async function refuseOldServer(client: Client): Promise<string> {
  const { rows } = await client.query<{ version: number; text: string }>(
    `select current_setting('server_version_num')::int as version,
            current_setting('server_version') as text`,
  )
  if ((rows[0]?.version ?? 0) < SERVER_VERSION_MIN) {
    throw new OperatorError(
      `The database runs PostgreSQL ${rows[0]?.text}. Annals requires 15 or later. Nothing was changed.`,
    )
  }
  return rows[0]?.text ?? ''
}

/** Searches all schemas, because `refuseOtherSchema` has its own message. */
async function refuseNoTables(client: Client): Promise<void> {
  const { rows } = await client.query(
    `select from pg_class where relname = 'chain_head' and relkind in ('r', 'p') limit 1`,
  )
  if (rows.length > 0) return
  throw new OperatorError(
    'The database has no Annals tables. If this is the right database, create them with annals migrate.',
  )
}

/** Tables in another schema wouldn't be found, and the service would start again without its events. */
async function refuseOtherSchema(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select nspname as name
       from pg_class
       join pg_namespace on pg_namespace.oid = relnamespace
      where relname in ('schema_migration', 'chain_head') and relkind in ('r', 'p')
      group by 1
     having count(*) = 2`,
  )
  const [other] = rows
  if (!other || rows.some(({ name }) => name === SCHEMA)) return
  throw new OperatorError(
    `The Annals tables are in the schema ${other.name}, but must be in ${SCHEMA}. Nothing was changed. If ${SCHEMA} is empty, run: drop schema ${SCHEMA}; alter schema ${other.name} rename to ${SCHEMA}`,
  )
}

/**
 * Roles belong to a server, so a database that is restored on another server
 * has its tables but not its roles.
 */
async function refuseMissingRoles(client: Client): Promise<void> {
  await client.query('set role annals_serving; set role annals_keeper; reset role')
}

type Present = Map<number, { checksum: string; oldestProgram: number; name: string }>

async function createMigrationTable(client: Client): Promise<void> {
  await client.query(`
    create table if not exists schema_migration (
      version        integer primary key,
      name           text not null,
      checksum       text not null,
      oldest_program integer not null,
      applied_at     timestamptz not null default now()
    )`)
}

async function readPresent(client: Client): Promise<Present> {
  const { rows } = await client.query<{
    version: number
    name: string
    checksum: string
    oldestProgram: number
  }>(
    `select version, name, checksum, oldest_program as "oldestProgram" from schema_migration order by version`,
  )
  return new Map(rows.map((row) => [row.version, row]))
}

function refuseOtherMigrations(present: Present, migrations: readonly Migration[]): void {
  const known = migrations.length
  for (const [version, { name, checksum, oldestProgram }] of present) {
    const mine = migrations[version - 1]
    if (!mine && oldestProgram > known) {
      throw new OperatorError(
        `The database has migration ${version} (${name}), which requires a program that knows migration ${oldestProgram}; this one knows ${known}. Upgrade this program.`,
      )
    }
    // Released migrations never change, so an unreleased version applied this one.
    if (mine && checksum !== checksumOf(mine)) {
      throw new OperatorError(
        `The database was created by an unreleased version of Annals (its migration ${version}, ${name}, is not the released one) and can't be upgraded. To carry its events over, export them as JSONL with that version, then send them to a new database with POST /v1/events/batch. Nothing was changed.`,
      )
    }
  }
}

async function apply(client: Client, migration: Migration): Promise<void> {
  await client.query('begin')
  try {
    // Insert the version row first, so that a second migrator that ignores the lock fails here.
    await client.query(
      'insert into schema_migration (version, name, checksum, oldest_program) values ($1, $2, $3, $4)',
      [migration.version, migration.name, checksumOf(migration), migration.oldestProgram],
    )
    await client.query(migration.sql)
    await confirmCommits(client, () => client.query('commit'))
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

function checksumOf({ sql }: Migration): string {
  return createHash('sha256').update(sql).digest('hex')
}

/** Turns an error that an operator can fix into a sentence. Returns any other error unchanged. */
function toMigrationError(error: unknown): unknown {
  if (error instanceof OperatorError || !(error instanceof Error)) return error
  const isRefused = error instanceof RefusedConnectionError
  const code = sqlStateOf(isRefused ? error.cause : error)
  if (error instanceof UnfitServerError) {
    return new OperatorError(`The database can't be used: ${error.message}.`, { cause: error })
  }
  if (/unsupported startup parameter/.test(error.message)) {
    return new OperatorError(
      `The database can't be used: it rejects connection settings (${error.message}). Connection poolers such as PgBouncer do this. Set ANNALS_DATABASE_URL to the address of PostgreSQL itself.`,
      { cause: error },
    )
  }
  if (code === SQLSTATE.READ_ONLY) {
    return new OperatorError(
      `The database is read-only (${error.message}). Set ANNALS_DATABASE_URL to the address of the primary, or list all servers: postgres://…@a:5432,b:5432/annals.`,
      { cause: error },
    )
  }
  if (error instanceof UnconfirmedCommitError) {
    return new OperatorError(
      'A migration was committed on the primary, but no synchronous standby confirmed it. Check the standby, then start again.',
      { cause: error },
    )
  }
  if (code === SQLSTATE.DISK_FULL) {
    return new OperatorError(
      'The database has no disk space left. Free some space and start again.',
      { cause: error },
    )
  }
  if (code === '28P01' || code === '28000') {
    return new OperatorError(
      `The database refused the login: ${error.message}. Check ANNALS_DATABASE_URL.`,
      { cause: error },
    )
  }
  if (code === SCHEMA_MISSING) {
    return new OperatorError(
      `The database has no schema ${SCHEMA} that this user can use. To create it, run: create schema ${SCHEMA} authorization current_user`,
      { cause: error },
    )
  }
  if (isRefused || code === '42501' || code === ROLE_UNKNOWN) {
    return new OperatorError(`The database returned an error: ${error.message}.`, { cause: error })
  }
  if (isOutage(error) || (code !== null && /^E[A-Z]+$/.test(code))) {
    return new OperatorError(
      `Can't reach the database: ${messageOf(error)}. Check that it is running and that ANNALS_DATABASE_URL is right.`,
      { cause: error },
    )
  }
  return error
}
