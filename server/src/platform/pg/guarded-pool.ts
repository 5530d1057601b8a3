import {
  Kysely,
  type PostgresCursor,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresQueryResult,
} from 'kysely'
import { confirmCommits, type NoticeSource } from './confirmed-commit.ts'
import { whileAlive, withDeadline } from '../time/deadline.ts'
import { keptPlanName } from './kept-plan.ts'
import type { Server } from './server-address.ts'
import { SQLSTATE, sqlStateOf } from './pg-error.ts'
import { ServerClient, ServerList } from './servers.ts'
import { chargeRows, rowOwner } from '../scheduling/row-cost.ts'
import { PROBE_EVERY_MS } from './probe-database.ts'
import type { SliceOwner } from '../scheduling/time-slice.ts'
import type { Tables } from './tables.ts'

export type PoolGuard = {
  responseMsMax: number
  /** Called repeatedly while a caller waits. False means an outage, even if the timeout hasn't expired. */
  isAlive: (server: Server) => Promise<boolean>
  servers: ServerList
}

/** Kysely's type of a `pg` client, extended by statement names. */
type NamedStatement = { name?: string; text: string; values: unknown[] }
type NamingClient = PostgresPoolClient &
  NoticeSource & {
    query<R>(statement: NamedStatement): Promise<PostgresQueryResult<R>>
  }
type NamingPool = Omit<PostgresPool, 'connect'> & { connect(): Promise<NamingClient> }

/**
 * A pool that closes a connection when a statement on it gets no response. If the network drops
 * packets, a socket takes a quarter of an hour to fail, and without this the pool would lose every
 * waiting connection for that long.
 */
export class GuardedPool implements PostgresPool {
  readonly options: object
  readonly #pool: NamingPool
  readonly #guard: PoolGuard

  constructor(pool: NamingPool, guard: PoolGuard) {
    this.options = pool.options
    this.#pool = pool
    this.#guard = guard
  }

  /** Connects to the current server, or to the next one that accepts the connection. */
  async connect(): Promise<PostgresPoolClient> {
    const { servers } = this.#guard
    for (let left = servers.servers.length; ; left -= 1) {
      const server = servers.current
      try {
        return await this.#connectTo(server)
      } catch (error) {
        if (left === 1 || servers.current === server) throw error
      }
    }
  }

  async #connectTo(server: Server): Promise<PostgresPoolClient> {
    const { servers } = this.#guard
    const connecting = this.#pool.connect()
    const dead = () => {
      servers.leave(server)
      // If the connection succeeds later, return it to the pool, because the caller is gone.
      connecting.then(
        (client) => client.release(),
        () => {},
      )
      return new Error('Connection terminated: the database is unreachable')
    }
    const client = await whileAlive(connecting, {
      everyMs: PROBE_EVERY_MS,
      isAlive: () => this.#guard.isAlive(server),
      dead,
    })
    return new GuardedClient(client, this.#guard)
  }

  async end(): Promise<void> {
    await this.#pool.end()
  }
}

const queryables = new WeakMap<ServerClient, Kysely<Tables>>()

/** Runs statements on one connection, which stays the caller's. The caller limits their time. */
export function queryableOn(client: ServerClient & NamingClient): Kysely<Tables> {
  const known = queryables.get(client)
  if (known) return known
  const guard = {
    responseMsMax: ONE_CLIENT_MS_MAX,
    isAlive: async () => true,
    servers: new ServerList({ servers: [client.server], needsPrimary: false }),
  }
  const guarded = new GuardedClient(client, guard)
  const lent: PostgresPoolClient = { query: guarded.query.bind(guarded), release: () => {} }
  const pool = { options: {}, connect: async () => lent, end: async () => {} }
  const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) })
  queryables.set(client, db)
  return db
}

/** The server cancels a statement earlier. */
const ONE_CLIENT_MS_MAX = 35_000

class GuardedClient implements PostgresPoolClient {
  readonly #client: NamingClient
  readonly #guard: PoolGuard
  #isStuck = false
  #isReadOnly = false

  constructor(client: NamingClient, guard: PoolGuard) {
    this.#client = client
    this.#guard = guard
  }

  query<R>(statement: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>
  query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>
  query<R>(
    statement: string | PostgresCursor<R>,
    parameters: readonly unknown[] = [],
  ): Promise<PostgresQueryResult<R>> | PostgresCursor<R> {
    if (typeof statement !== 'string') return this.#client.query(statement)
    // After a timeout, a rollback would wait behind the stuck statement.
    if (this.#isStuck) return Promise.reject(this.#stuckError())
    const stuck = () => {
      this.#isStuck = true
      return this.#stuckError()
    }
    const { responseMsMax, isAlive, servers } = this.#guard
    const server = this.#client instanceof ServerClient ? this.#client.server : servers.current
    const answer = withDeadline(this.#send<R>(statement, parameters), {
      timeoutMs: responseMsMax,
      late: stuck,
    })
    const guarded = whileAlive(answer, {
      everyMs: PROBE_EVERY_MS,
      isAlive: () => isAlive(server),
      dead: stuck,
    })
    return guarded.catch((error: unknown) => {
      this.#leaveReadOnly(error, server)
      throw error
    })
  }

  /** The primary became a standby: close this connection, and open new ones elsewhere. */
  #leaveReadOnly(error: unknown, server: Server): void {
    if (sqlStateOf(error) !== SQLSTATE.READ_ONLY) return
    this.#isReadOnly = true
    this.#guard.servers.leave(server)
  }

  #send<R>(text: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>> {
    const name = keptPlanName(text)
    // With a name, the driver prepares the statement once per connection.
    const statement = { ...(name !== null && { name }), text, values: [...parameters] }
    const owner = rowOwner()
    const send = () => confirmCommits(this.#client, () => this.#client.query<R>(statement))
    return owner === null ? send() : this.#chargeRows(owner, send)
  }

  async #chargeRows<R>(
    owner: SliceOwner,
    send: () => Promise<PostgresQueryResult<R>>,
  ): Promise<PostgresQueryResult<R>> {
    const bytesBefore = this.#bytesRead
    const result = await send()
    chargeRows(owner, { rows: result.rows, bytes: this.#bytesRead - bytesBefore })
    return result
  }

  /** A connection runs one statement at a time, so all bytes in between belong to it. */
  get #bytesRead(): number {
    return this.#client instanceof ServerClient ? this.#client.bytesRead : 0
  }

  release(destroy?: boolean): void {
    this.#client.release(destroy === true || this.#isStuck || this.#isReadOnly)
  }

  #stuckError(): Error {
    return new Error('Connection terminated: the database does not respond')
  }
}
