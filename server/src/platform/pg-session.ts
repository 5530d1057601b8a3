import { Socket } from 'node:net'
import { Client } from 'pg'
import type { Connection } from './pg.ts'

type SessionOptions = {
  connection: Connection
  /** PostgreSQL settings of the session, `name=value`. */
  settings: readonly string[]
  name: string
}

/** After this a second connection is tried; with its answer a caller still waits under a second. */
const DOUBT_AFTER_MS = 450
const SECOND_OPINION_MS_MAX = 400
/** However alive the database is, nobody waits longer than this. */
const PATIENCE_MS = 10_000

/**
 * One connection for one writer: work runs on it one at a time, it is made again after it broke,
 * and it is torn down when the database stops answering, so that nobody waits on a dead socket.
 */
export class PgSession implements AsyncDisposable {
  readonly #options: SessionOptions
  #client: Client | null = null
  #socket: Socket | null = null

  constructor(options: SessionOptions) {
    this.#options = options
  }

  /**
   * Runs work on the connection. When the database is out of reach it rejects within a second; then
   * the outcome of the work is unknown and the connection is gone.
   */
  async use<T>(work: (client: Client) => Promise<T>): Promise<T> {
    const doubt = setTimeout(() => void this.#tearDownUnlessReachable(), DOUBT_AFTER_MS)
    const patience = setTimeout(() => this.#socket?.destroy(), PATIENCE_MS)
    try {
      return await work((this.#client ??= await this.#connect()))
    } finally {
      clearTimeout(doubt)
      clearTimeout(patience)
    }
  }

  async #connect(): Promise<Client> {
    const client = new Client({
      ...this.#options.connection,
      application_name: this.#options.name,
      options: this.#options.settings.map((setting) => `-c ${setting}`).join(' '),
      keepAlive: true,
      stream: () => (this.#socket = new Socket()),
    })
    // The pending query rejects with the same error; between queries the next one finds no client.
    client.on('error', () => this.#forget(client))
    client.on('end', () => this.#forget(client))
    await client.connect()
    return client
  }

  #forget(client: Client): void {
    if (this.#client === client) this.#client = null
  }

  async #tearDownUnlessReachable(): Promise<void> {
    const socket = this.#socket
    const other = new Client({
      ...this.#options.connection,
      connectionTimeoutMillis: SECOND_OPINION_MS_MAX,
    })
    other.on('error', () => {})
    try {
      await other.connect()
      await other.end()
    } catch {
      socket?.destroy()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client?.end().catch(() => {})
  }
}
