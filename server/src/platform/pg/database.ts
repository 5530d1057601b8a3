import { Socket } from 'node:net'
import { Kysely, PostgresDialect, sql } from 'kysely'
import { type ClientConfig, Pool } from 'pg'
import { withDeadline } from '../time/deadline.ts'
import { GuardedPool, type PoolGuard } from './guarded-pool.ts'
import type { Logger } from '../logger.ts'
import { type Server } from './server-address.ts'
import { type Connection, PLAIN_SETTINGS, ServerClient, serverListOf } from './servers.ts'
import { poolTypes } from './pg-types.ts'
import { PROBE_MS_MAX, probeDatabase } from './probe-database.ts'
import type { Tables } from './tables.ts'

export type { Connection }
export {
  isOutage,
  isOutOfDescriptors,
  isRejection,
  isReroute,
  isRetryable,
  missingTableOf,
  SQLSTATE,
  sqlStateOf,
} from './pg-error.ts'

/** Kysely or one of its transactions, so that the caller decides about the transaction. */
export type Queryable = Kysely<Tables>

/**
 * The permissions of a connection. `annals_serving` can't update or delete events; archiving and,
 * in a later release, erasure use `annals_keeper`; the owner migrates.
 */
type DatabaseRole = 'annals_serving' | 'annals_keeper' | 'owner'

type DatabaseOptions = {
  connection: Connection
  role: DatabaseRole
  connectionsMax: number
  logger: Logger
  name?: string
  /** After this time, the server cancels a statement, and the connection stays usable. */
  statementMsMax?: number
  /** Multiplies the times after which a slow server counts as gone. */
  timeoutFactor?: number
  /** The query of `isReachable`. It must be cheap, and the caller limits its time. */
  check?: (db: Queryable) => Promise<unknown>
  /**
   * Aborted when a stopping service no longer waits. Statements that are still running fail, and so do all
   * later ones: a new connection could wait for the same lock.
   */
  cutSignal?: AbortSignal | undefined
}

/** One pool under one role, with Kysely on top. Disposal ends the pool. */
export class Database implements AsyncDisposable {
  readonly pool: Pool
  readonly db: Queryable
  /** Like `db`, for short queries that a caller waits for: no response within a second is an outage. */
  readonly dbFast: Queryable
  readonly timeoutFactor: number
  readonly #sockets = new Set<Socket>()
  readonly #runCheck: (db: Queryable) => Promise<unknown>
  readonly #cutSignal: AbortSignal | undefined
  #check = {
    isRunning: false,
    startedAtMs: Number.NEGATIVE_INFINITY,
    result: Promise.resolve(false),
  }
  readonly #cut = (): void => this.#destroySockets()

  constructor(options: DatabaseOptions) {
    const { connection, role, connectionsMax, logger, name = 'annals', cutSignal } = options
    const { timeoutFactor = 1 } = options
    this.timeoutFactor = timeoutFactor
    this.#runCheck = options.check ?? ((db) => sql`select 1`.execute(db))
    this.#cutSignal = cutSignal
    cutSignal?.addEventListener('abort', this.#cut)
    const servers = serverListOf(connection)
    const settings = settingsOf(role)
    this.pool = new Pool({
      // The pool passes the options below to this class.
      Client: class extends ServerClient {
        constructor(config?: ClientConfig) {
          super(servers, settings, config)
        }
      },
      types: poolTypes,
      max: connectionsMax,
      application_name: name,
      connectionTimeoutMillis: CONNECT_MS_MAX * timeoutFactor,
      idleTimeoutMillis: 60_000,
      statement_timeout: options.statementMsMax ?? STATEMENT_MS_MAX,
      keepAlive: true,
      stream: () => this.#openSocket(),
    })
    // The pool replaces an idle connection that breaks. Without a listener, the event would end the process.
    this.pool.on('error', (error) => logger.warn({ event: 'connection.lost', err: error }))
    // One probe per server at a time: an outage must not open a connection for each waiting caller.
    const probes = new Map<Server, Promise<boolean>>()
    const isAlive = (server: Server): Promise<boolean> => {
      const running = probes.get(server)
      if (running) return running
      const probe = probeDatabase(server, undefined, PROBE_MS_MAX * timeoutFactor).finally(() =>
        probes.delete(server),
      )
      probes.set(server, probe)
      return probe
    }
    this.db = onPool(this.pool, { responseMsMax: RESPONSE_MS_MAX, isAlive, servers })
    this.dbFast = onPool(this.pool, {
      responseMsMax: FAST_MS_MAX * timeoutFactor,
      isAlive,
      servers,
    })
  }

  /**
   * All callers share one check, because anyone can request it: a check that is running or started a moment
   * ago is not repeated. Otherwise health checks could keep every connection busy.
   */
  isReachable(): Promise<boolean> {
    const nowMs = performance.now()
    const { isRunning, startedAtMs } = this.#check
    if (!isRunning && nowMs - startedAtMs >= CHECK_REUSE_MS) {
      const check = { isRunning: true, startedAtMs: nowMs, result: this.#reach() }
      this.#check = check
      void check.result.finally(() => (check.isRunning = false))
    }
    return this.#check.result
  }

  async #reach(): Promise<boolean> {
    const late = () => new Error('the database did not respond in time')
    try {
      const timeoutMs = FAST_MS_MAX * this.timeoutFactor
      await withDeadline(this.#runCheck(this.dbFast), { timeoutMs, late })
      return true
    } catch {
      return false
    }
  }

  /** Ends the pool itself, because Kysely ends it only if `db` was used. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#cutSignal?.removeEventListener('abort', this.#cut)
    const cut = setTimeout(this.#cut, END_MS_MAX)
    const late = () => new Error('a connection was not returned to the pool')
    await withDeadline(this.pool.end(), { timeoutMs: 2 * END_MS_MAX, late }).catch(() => {})
    clearTimeout(cut)
  }

  #openSocket(): Socket {
    const socket = new Socket()
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    // Not immediately: `pg` connects next, and would open a destroyed socket again.
    if (this.#cutSignal?.aborted) process.nextTick(() => socket.destroy(new Error(STOPPING)))
    return socket
  }

  #destroySockets(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}

/**
 * These are part of the connection startup, so no query runs before the role is set. Every statement has an
 * index, but without statistics, or with those of an empty table, a sequential scan looks cheaper, and a
 * cached plan would keep it as the table grows. A node that is frozen or cut off can't end its
 * transactions, so the server does. Each statement uses one process: limits per company count connections,
 * and parallel workers would multiply what each of them costs the others.
 */
function settingsOf(role: DatabaseRole): readonly string[] {
  if (role === 'owner') return PLAIN_SETTINGS
  return [
    `role=${role}`,
    'enable_seqscan=off',
    'max_parallel_workers_per_gather=0',
    'idle_in_transaction_session_timeout=15s',
  ]
}

function onPool(pool: Pool, guard: PoolGuard): Queryable {
  const guarded = new GuardedPool(pool, guard)
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool: guarded }) })
}

/** Callers have their own deadline of a second. The rest is for a slow link to a standby. */
const CONNECT_MS_MAX = 3_000
const STATEMENT_MS_MAX = 30_000
/** The server cancels a statement earlier. This is for a server that no longer responds. */
const RESPONSE_MS_MAX = STATEMENT_MS_MAX + 5_000
/** Callers get a response within a second. The rest is for when our own thread is busy. */
const FAST_MS_MAX = 800
/** A node notices within this time that its database refuses connections. */
const CHECK_REUSE_MS = 250
const STOPPING = 'the service is stopping'
/** When the pool ends, statements that are still running have no caller left. */
const END_MS_MAX = 500
