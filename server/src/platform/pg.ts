import assert from 'node:assert/strict'
import { Socket } from 'node:net'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { type ClientConfig, DatabaseError, Pool, types as pgTypes } from 'pg'
import { UnconfirmedCommitError } from './confirmed-commit.ts'
import { withDeadline } from './deadline.ts'
import { GuardedPool, type PoolGuard } from './guarded-pool.ts'
import type { Logger } from './logger.ts'
import { type Server } from './pg-address.ts'
import { type Connection, PLAIN_SETTINGS, ServerClient, serverListOf } from './pg-servers.ts'
import { secondOpinion } from './second-opinion.ts'
import type { Tables } from './tables.ts'

export type { Connection }

/** Kysely, or a transaction of it: the caller decides about the transaction. */
export type Queryable = Kysely<Tables>

/**
 * What a connection may do. `annals_serving` cannot update or delete an event; archiving and
 * erasure use `annals_keeper`; the owner migrates.
 */
export type DatabaseRole = 'annals_serving' | 'annals_keeper' | 'owner'

/** SQLSTATE by name, as far as the program tells them apart. */
export const SQLSTATE = {
  UNIQUE_VIOLATION: '23505',
  CHECK_VIOLATION: '23514',
  UNDEFINED_TABLE: '42P01',
  SERIALIZATION_FAILURE: '40001',
  DEADLOCK_DETECTED: '40P01',
  DISK_FULL: '53100',
  CONFIGURATION_LIMIT_EXCEEDED: '53400',
  READ_ONLY: '25006',
} as const

const INT8_OID = 20

/** Every bigint of ours counts rows, so it fits a number; one that does not is a broken table. */
function parseInt8(text: string): number {
  const value = Number(text)
  assert(Number.isSafeInteger(value), 'a bigint of ours fits a number')
  return value
}

const types = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === INT8_OID ? parseInt8 : pgTypes.getTypeParser(oid, format),
}

type DatabaseOptions = {
  connection: Connection
  role: DatabaseRole
  connectionsMax: number
  logger: Logger
  name?: string
}

/** One pool under one role, with Kysely on top. Disposal ends the pool. */
export class Database implements AsyncDisposable {
  readonly pool: Pool
  readonly db: Queryable
  /** The same, for small questions a caller waits on: no answer within a second is an outage. */
  readonly hasty: Queryable
  readonly #sockets = new Set<Socket>()
  #cut: NodeJS.Timeout | null = null

  constructor({ connection, role, connectionsMax, logger, name = 'annals' }: DatabaseOptions) {
    const servers = serverListOf(connection)
    const settings = settingsOf(role)
    this.pool = new Pool({
      // The pool passes it the options below.
      Client: class extends ServerClient {
        constructor(config?: ClientConfig) {
          super(servers, settings, config)
        }
      },
      types,
      max: connectionsMax,
      application_name: name,
      connectionTimeoutMillis: CONNECT_MS_MAX,
      idleTimeoutMillis: 60_000,
      statement_timeout: STATEMENT_MS_MAX,
      keepAlive: true,
      stream: () => this.#openSocket(),
    })
    // An idle connection that breaks is replaced by the pool; unhandled it would end the process.
    this.pool.on('error', (error) => logger.warn({ event: 'connection.lost', err: error }))
    // One that breaks in use fails its query, and is nobody's but the borrower's to listen to.
    this.pool.on('connect', (client) => void client.on('error', () => {}))
    // One probe per server at a time: an outage must not open a connection per waiting caller.
    const opinions = new Map<Server, Promise<boolean>>()
    const isAlive = (server: Server): Promise<boolean> => {
      const asked = opinions.get(server)
      if (asked) return asked
      const opinion = secondOpinion(server).finally(() => opinions.delete(server))
      opinions.set(server, opinion)
      return opinion
    }
    this.db = onPool(this.pool, { answerMsMax: ANSWER_MS_MAX, isAlive, servers })
    this.hasty = onPool(this.pool, { answerMsMax: REACH_MS_MAX, isAlive, servers })
  }

  async isReachable(): Promise<boolean> {
    const late = () => new Error('the database did not answer in time')
    try {
      await withDeadline(sql`select 1`.execute(this.hasty), { timeoutMs: REACH_MS_MAX, late })
      return true
    } catch {
      return false
    }
  }

  /** Aborts running statements, for shutdown. */
  cutStatementsIn(ms: number): void {
    this.#cut = setTimeout(() => this.#destroySockets(), ms)
  }

  /** Ends the pool itself: Kysely ends it only if `db` was ever used. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#cut) clearTimeout(this.#cut)
    const cut = setTimeout(() => this.#destroySockets(), END_MS_MAX)
    const late = () => new Error('a connection was not returned to the pool')
    await withDeadline(this.pool.end(), { timeoutMs: 2 * END_MS_MAX, late }).catch(() => {})
    clearTimeout(cut)
  }

  #openSocket(): Socket {
    const socket = new Socket()
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return socket
  }

  #destroySockets(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}

/**
 * Part of the connection startup, so no query runs before the role is set. Every statement has an
 * index. Without statistics, or with those of an empty table, a sequential scan looks cheaper, and a
 * cached plan would keep it as the table grows.
 */
function settingsOf(role: DatabaseRole): readonly string[] {
  return role === 'owner' ? PLAIN_SETTINGS : [`role=${role}`, 'enable_seqscan=off']
}

function onPool(pool: Pool, guard: PoolGuard): Queryable {
  const guarded = new GuardedPool(pool, guard)
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: guarded }) })
}

/** A caller of ours has its own dead-line of a second; the rest is for a slow link to a standby. */
const CONNECT_MS_MAX = 3_000
const STATEMENT_MS_MAX = 30_000
/** The server ends a statement by itself before; this is for a server that cannot tell us. */
const ANSWER_MS_MAX = STATEMENT_MS_MAX + 5_000
const REACH_MS_MAX = 900
/** A statement that is still running when the pool ends has no caller left. */
const END_MS_MAX = 500

/** The code of a database error, or of the socket below it; null for anything else. */
export function sqlStateOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null
  return typeof error.code === 'string' ? error.code : null
}

/**
 * True when a partition was made for a row that was on its way into the default one: sent again, it
 * finds its place. The same code as a broken check of ours, which would name its constraint.
 */
export function isReroute(error: unknown): boolean {
  const isCheck = error instanceof DatabaseError && error.code === SQLSTATE.CHECK_VIOLATION
  return isCheck && error.constraint === undefined
}

const SOCKET_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

/**
 * SQLSTATEs of a server that is unavailable or doesn't accept writes: classes 08 (connection) and 53
 * (full disk, out of memory, too many connections), 57P01 to 57P05 (shutting down, starting, dropped),
 * a read-only server and an I/O error.
 */
const OUTAGE_SQLSTATE = /^(08|53|57P)|^(25006|58030)$/

/**
 * SQLSTATEs of a statement that failed and may succeed on retry: class 40 (deadlock, conflict on a
 * standby), a canceled statement, and transaction and lock timeouts.
 */
const RETRYABLE_SQLSTATE = /^40|^(57014|25P03|25P04|55P03)$/

/** What `pg` throws without a code when a connection breaks or cannot be had in time. */
const OUTAGE_MESSAGES =
  /Connection terminated|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|not queryable|query_wait_timeout/

/** True if the database is unreachable or doesn't accept writes. */
export function isOutage(error: unknown): boolean {
  if (SOCKET_CODES.has(sqlStateOf(error) ?? '')) return true
  if (error instanceof DatabaseError && OUTAGE_SQLSTATE.test(error.code ?? '')) return true
  return error instanceof Error && OUTAGE_MESSAGES.test(error.message)
}

/** True if the same call may succeed later. */
export function isRetryable(error: unknown): boolean {
  if (error instanceof DatabaseError && RETRYABLE_SQLSTATE.test(error.code ?? '')) return true
  return error instanceof UnconfirmedCommitError || isOutage(error)
}
