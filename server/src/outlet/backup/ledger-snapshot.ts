import type { PoolClient } from 'pg'
import type { Database, Queryable } from '../../platform/pg/database.ts'
import { copyRows } from './copy-stream.ts'
import { exportSnapshot, importSnapshot, prepareSession, useSnapshot } from './snapshot-store.ts'

/**
 * A fixed state of the whole database, however long it takes to read. One connection keeps the snapshot, and holds no
 * lock on a table. Each read is a short transaction of its own: a lock that lasts as long as a backup would keep
 * partitions from being created, and every query would wait behind that.
 */
export class LedgerSnapshot implements AsyncDisposable {
  readonly #database: Database
  readonly #holder: PoolClient
  readonly #reader: PoolClient
  readonly #id: string
  readonly takenAt: Date
  /** A connection with an unfinished transaction or copy can't be used again. */
  #isBroken = false

  private constructor(
    database: Database,
    clients: { holder: PoolClient; reader: PoolClient },
    { id, takenAt }: { id: string; takenAt: Date },
  ) {
    this.#database = database
    this.#holder = clients.holder
    this.#reader = clients.reader
    this.#id = id
    this.takenAt = takenAt
  }

  /** Needs three connections of the pool. */
  static async open(database: Database): Promise<LedgerSnapshot> {
    const holder = await database.pool.connect()
    const reader = await database.pool.connect()
    await prepareSession(holder)
    await prepareSession(reader)
    return new LedgerSnapshot(database, { holder, reader }, await exportSnapshot(holder))
  }

  /** Runs statements in the snapshot. Their locks are released at the end of the call. */
  async read<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    try {
      await importSnapshot(this.#reader, this.#id)
      const result = await work(this.#reader)
      await this.#reader.query('commit')
      return result
    } catch (error) {
      this.#isBroken = true
      throw error
    }
  }

  /** The rows of a copy statement, in the binary format. */
  async *copy(text: string, onRow: (row: Buffer) => void): AsyncGenerator<Buffer, void, void> {
    let isOver = false
    try {
      await importSnapshot(this.#reader, this.#id)
      yield* copyRows(this.#reader, text, onRow)
      await this.#reader.query('commit')
      isOver = true
    } finally {
      if (!isOver) this.#isBroken = true
    }
  }

  /** Runs store functions in the snapshot. */
  async query<T>(work: (trx: Queryable) => Promise<T>): Promise<T> {
    return await this.#database.db
      .transaction()
      .setIsolationLevel('repeatable read')
      .execute(async (trx) => {
        await useSnapshot(trx, this.#id)
        return await work(trx)
      })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#reader.release(this.#isBroken)
    this.#holder.release(true)
  }
}
