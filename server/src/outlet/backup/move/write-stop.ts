import type { PoolClient } from 'pg'
import { OperatorError } from '../../../errors.ts'
import { type Database, SQLSTATE, sqlStateOf } from '../../../platform/pg/database.ts'
import { monotonicClock as clock } from '../../../platform/time/clock.ts'
import { limitIdleTime, markLeft, readLedgerMove, takeStopLock } from './move-store.ts'

/** How long running writes may take to end. */
const WAIT_MS_MAX = 10_000
/** For the statement that ends the move. */
const RESERVE_MS = 500

/**
 * Stops all writes to the source, on every node, for as long as one connection is open: it holds a lock that each
 * write asks for. If this process dies, PostgreSQL closes the connection, and writes continue at once. If this process
 * hangs, PostgreSQL closes the connection when the time is over. Only the connection that holds the lock can end the
 * move, so a move never ends after writes have continued, whatever the clocks say.
 */
export class WriteStop implements AsyncDisposable {
  readonly #database: Database
  readonly #client: PoolClient
  readonly #startedAtMs: number
  readonly #stopMsMax: number
  #isLost = false

  private constructor(
    database: Database,
    client: PoolClient,
    { startedAtMs, stopMsMax }: { startedAtMs: number; stopMsMax: number },
  ) {
    this.#database = database
    this.#client = client
    this.#startedAtMs = startedAtMs
    this.#stopMsMax = stopMsMax
    client.once('end', () => (this.#isLost = true))
  }

  static async start(database: Database, stopMsMax: number): Promise<WriteStop> {
    const client = await database.pool.connect()
    const startedAtMs = clock()
    try {
      await takeStopLock(client, Math.min(WAIT_MS_MAX, stopMsMax / 2))
      const stop = new WriteStop(database, client, { startedAtMs, stopMsMax })
      await limitIdleTime(client, stopMsMax - stop.elapsedMs - RESERVE_MS)
      return stop
    } catch (error) {
      client.release(true)
      if (sqlStateOf(error) !== SQLSTATE.LOCK_NOT_AVAILABLE) throw error
      throw new OperatorError(
        'The last step could not start, because a transaction in the source takes too long. The source accepts events again. Run the command again: it continues where it stopped.',
        { cause: error },
      )
    }
  }

  get elapsedMs(): number {
    return clock() - this.#startedAtMs
  }

  /** Throws if writes may have continued. Call it between steps, so that none is started in vain. */
  refuseLost(): void {
    if (this.#isLost || this.elapsedMs > this.#stopMsMax) throw this.#lateError()
  }

  /** From here on, the source refuses writes for good. */
  async end(moveId: string): Promise<void> {
    this.refuseLost()
    try {
      if (await markLeft(this.#client, moveId)) return
    } catch (error) {
      // The response may have been lost after the commit.
      if (await this.#hasLeft(moveId)) return
      throw this.#lateError(error)
    }
    throw new OperatorError('Another annals move has replaced this one. The source accepts events.')
  }

  async #hasLeft(moveId: string): Promise<boolean> {
    const client = await this.#database.pool.connect()
    try {
      const move = await readLedgerMove(client)
      return move?.id === moveId && move.state === 'LEFT'
    } finally {
      client.release()
    }
  }

  #lateError(cause?: unknown): OperatorError {
    return new OperatorError(
      `The last step took longer than ${Math.round(this.#stopMsMax / 1_000)} s, so it was given up, and the source accepts events again. Run the command again when there is less load, or allow more time with --stop-seconds.`,
      { cause },
    )
  }

  /** Closing the connection releases the lock. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.release(true)
  }
}
