import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Client } from 'pg'
import { confirmCommits } from './confirmed-commit.ts'
import { readPendingIo, startDeadline, withDeadline } from '../time/deadline.ts'
import type { Server } from './server-address.ts'
import {
  connectFirst,
  type Connection,
  ServerClient,
  type ServerList,
  serverListOf,
} from './servers.ts'
import { PROBE_EVERY_MS, PROBE_MS_MAX, probeDatabase } from './probe-database.ts'

type SessionOptions = {
  connection: Connection
  /** PostgreSQL settings of the session, `name=value`. */
  settings: readonly string[]
  name: string
  /** The time limit for work, even if the database is alive. Null for no limit. */
  workMsMax: number | null
  /** By default, an outage is reported within a second, which suits a waiting caller. */
  timeouts?: SessionTimeouts
  /** Multiplies the default timeouts. */
  timeoutFactor?: number
  /** Aborted when the caller no longer waits: closes the connection and ends everything that runs on it. */
  signal?: AbortSignal | undefined
}

type SessionTimeouts = {
  /** For each server of a list. */
  connectMs: number
  /** While work runs, how often a second connection checks that the database is working on it. */
  probeEveryMs: number
  probeMs: number
}

const defaultTimeouts = (timeoutFactor: number): SessionTimeouts => ({
  connectMs: 3_000 * timeoutFactor,
  probeEveryMs: PROBE_EVERY_MS,
  probeMs: PROBE_MS_MAX * timeoutFactor,
})
/** The minimum bandwidth of a link to the database, so that large statements get time to arrive. */
const LINK_BYTES_PER_MS = 1_000
/** How long a statement may take to arrive that is sent as soon as this thread is free. */
const LATE_MS = 50
/** A clean disconnect takes one message. A dead network must not keep the process alive. */
const END_MS_MAX = 500

/**
 * A connection for one writer, which runs one task at a time. It reconnects after the connection breaks and
 * after a task fails, because that may leave state behind. It disconnects when the database stops
 * responding, so that no caller waits on a dead socket.
 */
export class PgSession implements AsyncDisposable {
  readonly #options: SessionOptions
  readonly #timeouts: SessionTimeouts
  readonly #servers: ServerList
  #server: Server
  #client: Client | null = null
  #socket: Socket | null = null
  /** The server's process for this connection. */
  #pid: number | null = null
  readonly #onAbort = (): void => this.drop()

  constructor(options: SessionOptions) {
    this.#options = options
    this.#timeouts = options.timeouts ?? defaultTimeouts(options.timeoutFactor ?? 1)
    this.#servers = serverListOf(options.connection)
    this.#server = this.#servers.current
    options.signal?.addEventListener('abort', this.#onAbort)
  }

  /**
   * Runs work on the connection. If the database is unreachable, rejects as soon as a probe detects it. If
   * it rejects, the outcome of the work is unknown and the connection is closed. The work must not pause
   * between statements: to the probe, a session that waits for us looks like one whose response was lost.
   */
  async use<T>(work: (client: Client) => Promise<T>): Promise<T> {
    let isOver = false
    const upload = new Upload(this.#socket?.bytesWritten ?? 0)
    const closeIfUnresponsive = async (): Promise<void> => {
      // If this thread was blocked, the response may have arrived but not been read yet.
      await readPendingIo()
      // By the time the probe responds, the session may have moved to another server.
      const socket = this.#socket
      const isUploading = upload.isUnderWay(socket?.bytesWritten ?? 0)
      if (isOver || (await this.#isAtWork({ isUploading }))) return
      // Check again, because the response may have arrived meanwhile.
      if (!isOver) socket?.destroy()
    }
    const probeTimer = setInterval(() => void closeIfUnresponsive(), this.#timeouts.probeEveryMs)
    const { workMsMax } = this.#options
    using _limit =
      workMsMax === null
        ? null
        : startDeadline({ timeoutMs: workMsMax }, () => this.#socket?.destroy())
    try {
      const client = (this.#client ??= await this.#connect())
      return await confirmCommits(client, () => work(client))
    } catch (error) {
      this.drop()
      throw error
    } finally {
      isOver = true
      clearInterval(probeTimer)
    }
  }

  /** False while there is no connection, also if none was needed yet. */
  get isConnected(): boolean {
    return this.#client !== null
  }

  /**
   * Closes the connection immediately. The next work opens a new one, to wherever the address points then.
   */
  drop(): void {
    this.#client = null
    this.#socket?.destroy()
  }

  async #connect(): Promise<Client> {
    this.#pid = null
    // Until the server's process is known, a second connection can't tell whether it is waiting for us.
    let limit: Disposable | undefined
    const createClient = (): ServerClient => {
      // Each server of a list gets the full timeout.
      limit?.[Symbol.dispose]()
      limit = startDeadline({ timeoutMs: this.#timeouts.connectMs }, () => this.#socket?.destroy())
      return this.#createClient()
    }
    try {
      const client = await connectFirst(this.#servers, createClient)
      // A pending query rejects with the same error. Between queries, the next one opens a new connection.
      client.on('error', () => this.#forget(client))
      client.on('end', () => this.#forget(client))
      this.#pid = client.pid
      return client
    } finally {
      limit?.[Symbol.dispose]()
    }
  }

  #createClient(): ServerClient {
    this.#options.signal?.throwIfAborted()
    const client = new ServerClient(this.#servers, this.#options.settings, {
      application_name: this.#options.name,
      keepAlive: true,
      stream: () => (this.#socket = new Socket()),
    })
    this.#server = client.server
    return client
  }

  #forget(client: Client): void {
    if (this.#client === client) this.#client = null
  }

  /**
   * Whether the database responds and isn't itself waiting for us. If it waits although everything must
   * have arrived, the network has lost data in one direction. Its process is then terminated, because it
   * may hold locks that others wait for.
   */
  async #isAtWork({ isUploading }: { isUploading: boolean }): Promise<boolean> {
    const { probeEveryMs, probeMs } = this.#timeouts
    const ask = async (client: Client): Promise<boolean> => {
      if (isUploading) return true
      const session = [this.#pid, this.#options.name]
      const { rows } = await client.query<{ since: string }>(
        `select state_change::text as since
           from pg_stat_activity
          where pid = $1 and application_name = $2 and state <> 'active'
            and state_change < clock_timestamp() - $3 * interval '1 millisecond'`,
        [...session, probeEveryMs / 2],
      )
      const [waiting] = rows
      if (!waiting) return true
      // It may have waited only because this thread was late. Then it gets its next statement now.
      await delay(LATE_MS)
      const { rowCount } = await client.query(
        `select pg_terminate_backend(pid)
           from pg_stat_activity
          where pid = $1 and application_name = $2 and state <> 'active'
            and state_change = $3::timestamptz`,
        [...session, waiting.since],
      )
      return rowCount === 0
    }
    return await probeDatabase(this.#server, ask, probeMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
    const ended = this.#client?.end() ?? Promise.resolve()
    const late = () => new Error('the database connection did not close in time')
    await withDeadline(ended, { timeoutMs: END_MS_MAX, late }).catch(() => {})
    this.drop()
  }
}

/** Estimates from the bytes written to a socket whether some may still be in transit. */
class Upload {
  #writtenBytes: number
  #checkedAtMs = performance.now()
  #arrivesByMs = 0

  constructor(writtenBytes: number) {
    this.#writtenBytes = writtenBytes
  }

  /** Call this at regular intervals. A count that went down belongs to a new socket. */
  isUnderWay(writtenBytes: number): boolean {
    const newBytes =
      writtenBytes < this.#writtenBytes ? writtenBytes : writtenBytes - this.#writtenBytes
    if (newBytes > 0) {
      const sentAtMs = Math.max(this.#arrivesByMs, this.#checkedAtMs)
      this.#arrivesByMs = sentAtMs + newBytes / LINK_BYTES_PER_MS
    }
    this.#writtenBytes = writtenBytes
    this.#checkedAtMs = performance.now()
    return this.#checkedAtMs < this.#arrivesByMs
  }
}
