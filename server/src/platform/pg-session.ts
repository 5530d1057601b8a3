import { Socket } from 'node:net'
import type { Client } from 'pg'
import { confirmed } from './confirmed-commit.ts'
import { readPendingIo, withDeadline } from './deadline.ts'
import type { Server } from './pg-address.ts'
import {
  connectFirst,
  type Connection,
  ServerClient,
  type ServerList,
  serverListOf,
} from './pg-servers.ts'
import { PROBE_EVERY_MS, PROBE_MS_MAX, probeDatabase } from './probe-database.ts'

type SessionOptions = {
  connection: Connection
  /** PostgreSQL settings of the session, `name=value`. */
  settings: readonly string[]
  name: string
  /** The time limit for work, even if the database is alive. Null for no limit. */
  workMsMax: number | null
  /** By default an outage is reported within a second, which suits a caller that waits. */
  timeouts?: SessionTimeouts
  /** Aborted when the caller no longer waits: ends the connection and everything that runs on it. */
  signal?: AbortSignal | undefined
}

type SessionTimeouts = {
  /** For each server of a list. */
  connectMs: number
  /** While work runs, how often a second connection checks that the database works on it. */
  probeEveryMs: number
  probeMs: number
}

const TIMEOUTS: SessionTimeouts = {
  connectMs: 3_000,
  probeEveryMs: PROBE_EVERY_MS,
  probeMs: PROBE_MS_MAX,
}
/** A link to the database carries at least this much, so larger statements are given time to arrive. */
const LINK_BYTES_PER_MS = 1_000
/** A clean disconnect takes one message. A dead network must not keep the process alive. */
const END_MS_MAX = 500

/**
 * One connection for one writer, which runs one piece of work at a time. It reconnects after the
 * connection broke and after failed work, which may have left state behind. It disconnects when the
 * database stops responding, so that no caller waits on a dead socket.
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
    this.#timeouts = options.timeouts ?? TIMEOUTS
    this.#servers = serverListOf(options.connection)
    this.#server = this.#servers.current
    options.signal?.addEventListener('abort', this.#onAbort)
  }

  /**
   * Runs work on the connection. If the database is unreachable, rejects as soon as a probe finds out. If
   * it rejects, the outcome of the work is unknown and the connection is closed. The work must not pause
   * between statements: a session that waits for us looks like one whose answer was lost.
   */
  async use<T>(work: (client: Client) => Promise<T>): Promise<T> {
    let isOver = false
    const upload = new Upload(this.#socket?.bytesWritten ?? 0)
    const tearDownIfSilent = async (): Promise<void> => {
      // After a pause of this thread, the answer may have arrived unread.
      await readPendingIo()
      // By the time of the answer, the session may have moved on to another server.
      const socket = this.#socket
      const isArriving = upload.isUnderWay(socket?.bytesWritten ?? 0)
      if (isOver || (await this.#isAtWork({ isArriving }))) return
      // Unless it was answered at last, in the meantime.
      if (!isOver) socket?.destroy()
    }
    const doubt = setInterval(() => void tearDownIfSilent(), this.#timeouts.probeEveryMs)
    const { workMsMax } = this.#options
    const limit =
      workMsMax === null ? undefined : setTimeout(() => this.#socket?.destroy(), workMsMax)
    try {
      const client = (this.#client ??= await this.#connect())
      return await confirmed(client, () => work(client))
    } catch (error) {
      this.drop()
      throw error
    } finally {
      isOver = true
      clearInterval(doubt)
      clearTimeout(limit)
    }
  }

  /** False while there is no connection, be it that none was needed yet. */
  get isConnected(): boolean {
    return this.#client !== null
  }

  /** Ends the connection at once; the next work gets a new one, from wherever the address leads. */
  drop(): void {
    this.#client = null
    this.#socket?.destroy()
  }

  async #connect(): Promise<Client> {
    this.#pid = null
    // Until the server's process is known, a second connection can't tell whether it waits for us.
    const limit = setTimeout(() => this.#socket?.destroy(), this.#timeouts.connectMs)
    const makeClient = (): ServerClient => {
      // Each server of a list gets the whole time.
      limit.refresh()
      return this.#makeClient()
    }
    try {
      const client = await connectFirst(this.#servers, makeClient)
      // The pending query rejects with the same error; between queries the next one finds no client.
      client.on('error', () => this.#forget(client))
      client.on('end', () => this.#forget(client))
      this.#pid = client.pid
      return client
    } finally {
      clearTimeout(limit)
    }
  }

  #makeClient(): ServerClient {
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
   * Whether the database is there and not itself waiting for us. If it waits although everything must
   * have arrived, the network has lost what one of us sent; its process is ended, because it may hold
   * locks that others wait for.
   */
  async #isAtWork({ isArriving }: { isArriving: boolean }): Promise<boolean> {
    const { probeEveryMs, probeMs } = this.#timeouts
    const ask = async (client: Client): Promise<boolean> => {
      if (isArriving) return true
      const { rowCount } = await client.query(
        `select pg_terminate_backend(pid)
           from pg_stat_activity
          where pid = $1 and application_name = $2 and state <> 'active'
            and state_change < clock_timestamp() - $3 * interval '1 millisecond'`,
        [this.#pid, this.#options.name, probeEveryMs / 2],
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

/** Estimates from the bytes written to a socket whether some may still be on their way. */
class Upload {
  #writtenBytes: number
  #checkedAtMs = performance.now()
  #arrivesByMs = 0

  constructor(writtenBytes: number) {
    this.#writtenBytes = writtenBytes
  }

  /** Call at regular intervals. A count that went down is that of a new socket. */
  isUnderWay(writtenBytes: number): boolean {
    const fresh =
      writtenBytes < this.#writtenBytes ? writtenBytes : writtenBytes - this.#writtenBytes
    if (fresh > 0) {
      const sentAtMs = Math.max(this.#arrivesByMs, this.#checkedAtMs)
      this.#arrivesByMs = sentAtMs + fresh / LINK_BYTES_PER_MS
    }
    this.#writtenBytes = writtenBytes
    this.#checkedAtMs = performance.now()
    return this.#checkedAtMs < this.#arrivesByMs
  }
}
