import { Client, DatabaseError } from 'pg'
import { setTimeout as delay } from 'node:timers/promises'

import { EngineError } from './engine-error.ts'

/** What `pg` needs to connect. */
export interface EngineConnection {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
}

type Probe =
  | { kind: 'open'; presence: Presence }
  /** It responds, but doesn't accept connections at the moment: it is starting, recovering or stopping. */
  | { kind: 'starting' }
  /** It is running, but all connections are in use. */
  | { kind: 'full' }
  | { kind: 'closed' }

/**
 * Not the service's database, so that one can be dropped or copied as a template, and its advisory locks
 * can't collide with ours.
 */
const PRESENCE_DATABASE = 'postgres'
const APPLICATION_NAME = 'annals engine presence'

/** Advisory locks have two keys. The first identifies ours: 'ANNL' in ASCII. */
const LOCK_SPACE = 0x414e4e4c
const USER_LOCK = 1
const SERVICE_LOCK = 2

const CONNECT_MS_MAX = 10_000
/** The session of a killed service ends a moment after the service. */
const SERVICE_LOCK_WAIT_MS_MAX = 2_000
const POLL_MS = 20

/** Starting, stopping, or recovering after a crash. */
const OPERATOR_INTERVENTION = '57P'
const TOO_MANY_CONNECTIONS = '53300'
const INVALID_PASSWORD = '28P01'

/**
 * A connection that stays open while a process uses the engine. PostgreSQL releases its locks when the
 * process ends in any way, so they show which processes use the engine, without files that could be left
 * behind. The end of the connection tells the process that the engine is gone.
 */
export class Presence {
  readonly lost: Promise<void>
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
    // The cause doesn't matter here, because the end of the connection follows every error.
    client.on('error', () => {})
    this.lost = new Promise((resolve) => client.once('end', () => resolve()))
  }

  /**
   * The caller must hold the file lock. Otherwise the engine would look unused until the lock below is taken.
   */
  async announce({ exclusive }: { exclusive: boolean }): Promise<boolean> {
    await this.#client.query('select pg_advisory_lock_shared($1, $2)', [LOCK_SPACE, USER_LOCK])
    if (!exclusive) return true
    const giveUpAtMs = performance.now() + SERVICE_LOCK_WAIT_MS_MAX
    while (!(await this.#tryLock(SERVICE_LOCK))) {
      if (performance.now() >= giveUpAtMs) return false
      await delay(POLL_MS)
    }
    return true
  }

  /**
   * Whether no other process uses the engine. Releases its own lock and checks on the same connection: a
   * new connection would still see the old one's lock for a moment after it closed.
   */
  async isLast(): Promise<boolean> {
    await this.#client.query('select pg_advisory_unlock_all()')
    return this.#tryLock(USER_LOCK)
  }

  /** The process that holds the service lock, according to its application name. */
  async findServicePid(): Promise<number | null> {
    const { rows } = await this.#client.query<{ applicationName: string }>(
      `select a.application_name as "applicationName"
         from pg_locks as l
         join pg_stat_activity as a on a.pid = l.pid
        where l.locktype = 'advisory' and l.granted
          and l.classid = $1 and l.objid = $2 and l.objsubid = 2`,
      [LOCK_SPACE, SERVICE_LOCK],
    )
    const pid = /, process (\d+)$/.exec(rows[0]?.applicationName ?? '')?.[1]
    return pid === undefined ? null : Number(pid)
  }

  /** Also creates the database if a crash right after the creation of the engine prevented it. */
  async ensureDatabase(name: string): Promise<void> {
    const found = await this.#client.query('select 1 from pg_database where datname = $1', [name])
    if (found.rowCount === 0) {
      await this.#client.query(`create database ${this.#client.escapeIdentifier(name)}`)
    }
  }

  async close(): Promise<void> {
    // A broken connection has nothing left to close.
    await this.#client.end().catch(() => {})
  }

  async #tryLock(key: number): Promise<boolean> {
    const { rows } = await this.#client.query<{ isMine: boolean }>(
      'select pg_try_advisory_lock($1, $2) as "isMine"',
      [LOCK_SPACE, key],
    )
    return rows[0]?.isMine === true
  }
}

/** Tries to connect once. Throws only if retrying can't help. */
export async function probeEngine(connection: EngineConnection): Promise<Probe> {
  const client = new Client({
    ...connection,
    database: PRESENCE_DATABASE,
    application_name: `${APPLICATION_NAME}, process ${process.pid}`,
    connectionTimeoutMillis: CONNECT_MS_MAX,
  })
  const presence = new Presence(client)
  try {
    await client.connect()
    return { kind: 'open', presence }
  } catch (cause) {
    await presence.close()
    if (!(cause instanceof DatabaseError)) return { kind: 'closed' }
    if (cause.code?.startsWith(OPERATOR_INTERVENTION)) return { kind: 'starting' }
    if (cause.code === TOO_MANY_CONNECTIONS) return { kind: 'full' }
    if (cause.code === INVALID_PASSWORD) {
      throw new EngineError(
        'The database rejects the password in engine.password of its data folder. Restore the ' +
          'original file from a backup.',
        { cause },
      )
    }
    throw cause
  }
}
