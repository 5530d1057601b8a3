import { Socket } from 'node:net'
import { Client, type ClientConfig, DatabaseError } from 'pg'
import { type Address, hostAndPort, type Server } from './server-address.ts'
import { isOutage, messageOf, SQLSTATE, sqlStateOf } from './pg-error.ts'
import { sessionTypes } from './pg-types.ts'

/**
 * The servers of a database, one of which is writable at a time. New connections go to the server that
 * accepted the last one. If it is down or no longer the primary, they move on to the next in the list.
 * All connections of a process share one list, so a single failure is enough. As soon as one connection
 * finds another primary, those to other servers are cut: a former primary that is stopping or read-only
 * keeps its sessions, and they would go on reading old data.
 */
export class ServerList {
  readonly servers: readonly Server[]
  readonly needsPrimary: boolean
  readonly #open = new Set<ServerClient>()
  #at = 0

  constructor({ servers, needsPrimary }: Address) {
    this.servers = servers
    this.needsPrimary = needsPrimary
  }

  get current(): Server {
    const server = this.servers[this.#at]
    if (!server) throw new Error('a list of servers has at least one')
    return server
  }

  /** Compare-and-set: many callers can find the same server down, but only one moves on. */
  leave(server: Server): void {
    if (this.current === server) this.#at = (this.#at + 1) % this.servers.length
  }

  /**
   * The newest connection determines the primary. Connections to any other server are cut. If no primary
   * is required, a load balancer may spread the connections over several servers on purpose.
   */
  accept(client: ServerClient): void {
    if (!this.needsPrimary) return
    this.#open.add(client)
    client.once('end', () => this.#open.delete(client))
    for (const other of this.#open) {
      if (other.postmaster !== client.postmaster) other.cut()
    }
  }
}

/** How to reach a database: one server, or several of which one is the primary. */
export type Connection = Server | ServerList

export function serverListOf(connection: Connection): ServerList {
  if (connection instanceof ServerList) return connection
  return new ServerList({ servers: [connection], needsPrimary: false })
}

/** A setting for connections without a role, to check whether settings reach the server. */
export const PLAIN_SETTINGS: readonly string[] = ['annals.session=direct']

/** Contains all tables. */
export const SCHEMA = 'public'

/**
 * Settings that our transactions and the parsing of results rely on. A default of the role, the database or
 * the server must not change them: `pg` can only read dates in ISO style and bytes in hex.
 */
const PINNED_SETTINGS: readonly string[] = [
  'DateStyle=ISO, MDY',
  'TimeZone=UTC',
  'IntervalStyle=postgres',
  'bytea_output=hex',
  'client_encoding=UTF8',
  // The warning about a commit that no standby confirmed must reach us: see confirmed-commit.ts.
  'client_min_messages=notice',
  'extra_float_digits=1',
  'array_nulls=on',
  'standard_conforming_strings=on',
  'default_transaction_isolation=read committed',
  // Pooled connections, and those that hold a lock, are idle for longer.
  'idle_session_timeout=0',
  // Without it, a schema with the name of the login would get its own tables.
  `search_path=${SCHEMA}`,
]

/**
 * A single-use connection to the current server of a list. It counts as open once the server has confirmed
 * all settings: a connection pooler may silently drop them, and the service would run as the owner of its
 * tables. Every connection is checked, because an address can point to another server later. It is a class
 * because `pg` requires one for a pool.
 */
export class ServerClient extends Client {
  readonly server: Server
  readonly #list: ServerList
  readonly #settings: readonly string[]
  #pid: number | null = null
  #postmaster: string | null = null

  constructor(list: ServerList, settings: readonly string[], config: ClientConfig = {}) {
    const server = list.current
    super({ types: sessionTypes, ...config, ...configOf(server, settings) })
    this.server = server
    this.#list = list
    this.#settings = [...settings, ...PINNED_SETTINGS]
    // Pending queries reject with the same error. Without a listener, the event would end the process.
    this.on('error', () => {})
  }

  /** The server's process for this connection; null until it is open. */
  get pid(): number | null {
    return this.#pid
  }

  /**
   * Identifies the server by the time it was started, in microseconds; null until the connection is open.
   * The address doesn't identify it: two proxies can lead to one server, and one name can move to another.
   */
  get postmaster(): string | null {
    return this.#postmaster
  }

  /** Ends the connection without waiting. A statement that is still running fails like in an outage. */
  cut(reason = 'another server is the primary now'): void {
    this.connection.stream.destroy(new Error(`Connection terminated: ${reason}`))
  }

  /** All bytes that the server has sent. */
  get bytesRead(): number {
    const { stream } = this.connection
    return stream instanceof Socket ? stream.bytesRead : 0
  }

  override connect(): Promise<this>
  override connect(callback: (error: unknown) => void): void
  override connect(callback?: (error: unknown) => void): Promise<this> | void {
    const connecting = this.#open()
    if (!callback) return connecting
    // oxlint-disable-next-line promise/no-callback-in-promise -- the pool of `pg` takes nothing else
    connecting.then(() => callback(null), callback)
  }

  async #open(): Promise<this> {
    try {
      await super.connect()
      const { pid, postmaster } = await this.#check()
      this.#pid = pid
      this.#postmaster = postmaster
      this.#list.accept(this)
      return this
    } catch (error) {
      this.#list.leave(this.server)
      super.end().catch(() => {})
      const isRefusal = error instanceof DatabaseError && !isOutage(error)
      throw isRefusal ? new RefusedConnectionError(error) : error
    }
  }

  async #check(): Promise<SessionRow> {
    const pairs = this.#settings.map((setting) => setting.split('=', 2))
    const names = pairs.map(([name]) => name)
    const { rows } = await super.query<SessionRow>(CHECK, [names])
    const [session] = rows
    if (!session) throw new Error('a select without a table has a row')
    if (this.#list.needsPrimary && session.isReadOnly) {
      throw new UnfitServerError(`${hostAndPort(this.server)} is read-only or a standby`)
    }
    for (const [nth, [name, value]] of pairs.entries()) {
      const isRole = name === 'role'
      if (session.values[nth] === value && (!isRole || session.user === value)) continue
      const instead = isRole ? `, and would run as ${session.user}` : ''
      throw new UnfitServerError(
        `${hostAndPort(this.server)} ignores connection settings (${name}=${value})${instead}. Connection poolers such as PgBouncer do this. Set ANNALS_DATABASE_URL to the address of PostgreSQL itself`,
      )
    }
    return session
  }
}

type SessionRow = {
  pid: number
  postmaster: string
  user: string
  isReadOnly: boolean
  values: (string | null)[]
}

/**
 * Also makes commits wait for the disk, and for the standby if there is a synchronous one. A server can be
 * configured to wait for more (`remote_apply`), so that is kept. The setting is always written: otherwise
 * a reload of the server's configuration would change open connections.
 */
const CHECK = `
  select set_config('synchronous_commit',
                    case when current_setting('synchronous_commit') in ('off', 'local') then 'on'
                         else current_setting('synchronous_commit') end, false),
         pg_backend_pid() as pid, pg_postmaster_start_time()::text as postmaster, current_user as "user",
         pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as "isReadOnly",
         array(select current_setting(name, true)
                 from unnest($1::text[]) with ordinality as setting (name, nth)
                order by nth) as values`

/**
 * The server responds but can't be used. Has PostgreSQL's code for a rejected
 * connection, which counts as an outage.
 */
export class UnfitServerError extends Error {
  override name = 'UnfitServerError'
  readonly code = SQLSTATE.CONNECTION_REJECTED
}

/**
 * The server refused the connection for a reason that only an operator can fix, such as a locked login. For
 * callers this is an outage, although the same SQLSTATE from a statement would be a bug.
 */
export class RefusedConnectionError extends Error {
  override name = 'RefusedConnectionError'
  readonly code = SQLSTATE.CONNECTION_REJECTED

  constructor(cause: DatabaseError) {
    super(cause.message, { cause })
  }
}

type Refusal = { server: Server; error: unknown }

/** No server of a list accepted the connection. The message has the reason of each. */
class NoServerError extends Error {
  override name = 'NoServerError'
  readonly code: string
  readonly isStarting: boolean

  constructor(refusals: readonly Refusal[]) {
    super(refusals.map(reasonOf).join('; '), { cause: refusals.at(-1)?.error })
    const { TOO_MANY_CONNECTIONS, CONNECTION_FAILED } = SQLSTATE
    // The writer must be able to tell that a server is full rather than down.
    const isFull = refusals.some(({ error }) => sqlStateOf(error) === TOO_MANY_CONNECTIONS)
    this.code = isFull ? TOO_MANY_CONNECTIONS : CONNECTION_FAILED
    // A login that one server refuses won't work on the others either.
    const isRefused = refusals.some(({ error }) => error instanceof RefusedConnectionError)
    this.isStarting = !isRefused && refusals.some(({ error }) => isStarting(error))
  }
}

/** `ENOENT`: the socket file of a local server, which doesn't exist yet. */
const STARTING_CODES: readonly string[] = [SQLSTATE.CANNOT_CONNECT_NOW, 'ECONNREFUSED', 'ENOENT']

/** True if the server, or one in the list, may accept connections once it has started. */
export function isStarting(error: unknown): boolean {
  if (error instanceof NoServerError) return error.isStarting
  return STARTING_CODES.includes(sqlStateOf(error) ?? '')
}

/** Tries each server of a list once, the current one first, and returns the first connection. */
export async function connectFirst(
  list: ServerList,
  make: () => ServerClient,
): Promise<ServerClient> {
  const refusals: Refusal[] = []
  for (;;) {
    const client = make()
    try {
      return await client.connect()
    } catch (error) {
      if (list.servers.length === 1) throw error
      refusals.push({ server: client.server, error })
      if (refusals.length === list.servers.length) throw new NoServerError(refusals)
    }
  }
}

function reasonOf({ server, error }: Refusal): string {
  const message = messageOf(error)
  return error instanceof UnfitServerError ? message : `${hostAndPort(server)}: ${message}`
}

/** Options for `pg`. Settings from the address come first, so that ours override them. */
export function configOf(server: Server, settings: readonly string[] = []): ClientConfig {
  const given = 'options' in server && server.options ? [server.options] : []
  const ours = [...settings, ...PINNED_SETTINGS].map((setting) => `-c ${escapeOption(setting)}`)
  return { ...server, options: [...given, ...ours].join(' ') }
}

/** PostgreSQL splits the options at spaces without a backslash before them. */
function escapeOption(setting: string): string {
  return setting.replaceAll(/[\\\s]/g, '\\$&')
}
