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

export type Probe =
  | { kind: 'open'; presence: Presence }
  /** It answers, and will admit us in a while: it starts, recovers or stops. */
  | { kind: 'starting' }
  /** It runs and every connection is taken. */
  | { kind: 'full' }
  | { kind: 'closed' }

/**
 * Not the service's database: that one can then be dropped, or copied as a template, and its own
 * advisory locks cannot meet ours.
 */
const PRESENCE_DATABASE = 'postgres'
const APPLICATION_NAME = 'annals engine presence'

/** Advisory locks of two keys; the first is ours, 'ANNL' in ASCII. */
const LOCK_SPACE = 0x414e4e4c
const USER_LOCK = 1
const SERVICE_LOCK = 2

const CONNECT_MS_MAX = 10_000
/** A killed service's session ends a moment after it. */
const SERVICE_LOCK_WAIT_MS_MAX = 2_000
const POLL_MS = 20

/** Starting, stopping, recovering after a crash. */
const OPERATOR_INTERVENTION = '57P'
const TOO_MANY_CONNECTIONS = '53300'
const INVALID_PASSWORD = '28P01'

/**
 * One connection that is open as long as a process uses the engine. PostgreSQL gives up its locks
 * the moment the process is gone, however it went, so they tell who is there without any file that
 * could be left behind; and its end tells the process that the engine is gone.
 */
export class Presence {
  readonly lost: Promise<void>
  readonly #client: Client

  constructor(client: Client) {
    this.#client = client
    // What went wrong does not matter here: every error of a connection is followed by its end.
    client.on('error', () => {})
    this.lost = new Promise((resolve) => client.once('end', () => resolve()))
  }

  /** The file lock must be held: in between, the engine would look unused. */
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
   * Whether nobody else is there. Asked on the same connection, which gives up its own lock first:
   * a fresh one would see the old one's lock for a moment after it closed.
   */
  async isLast(): Promise<boolean> {
    await this.#client.query('select pg_advisory_unlock_all()')
    return this.#tryLock(USER_LOCK)
  }

  /** The process that holds the service's lock, by what it said of itself. */
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

  /** Also repairs what a crash between the engine's making and this left out. */
  async ensureDatabase(name: string): Promise<void> {
    const found = await this.#client.query('select 1 from pg_database where datname = $1', [name])
    if (found.rowCount === 0) {
      await this.#client.query(`create database ${this.#client.escapeIdentifier(name)}`)
    }
  }

  async close(): Promise<void> {
    // A connection that is broken already has nothing left to close.
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

/** Tries to connect once. Throws only when no later try can do better. */
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
        'The database refuses the password in engine.password of its data folder; put back the ' +
          'file that was made with it.',
        { cause },
      )
    }
    throw cause
  }
}
