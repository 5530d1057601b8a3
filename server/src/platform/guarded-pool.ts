import type { PostgresCursor, PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely'
import { withDeadline } from './deadline.ts'

/**
 * A pool in which a statement that stays unanswered costs its connection. A network that swallows
 * packets breaks no socket for a quarter of an hour; without this every connection that waits on
 * such a one would be lost to the pool for as long.
 */
export class GuardedPool implements PostgresPool {
  readonly options: object
  readonly #pool: PostgresPool
  readonly #answerMsMax: number

  constructor(pool: PostgresPool, { answerMsMax }: { answerMsMax: number }) {
    this.options = pool.options
    this.#pool = pool
    this.#answerMsMax = answerMsMax
  }

  async connect(): Promise<PostgresPoolClient> {
    return new GuardedClient(await this.#pool.connect(), this.#answerMsMax)
  }

  async end(): Promise<void> {
    await this.#pool.end()
  }
}

class GuardedClient implements PostgresPoolClient {
  readonly #client: PostgresPoolClient
  readonly #answerMsMax: number
  #isStuck = false

  constructor(client: PostgresPoolClient, answerMsMax: number) {
    this.#client = client
    this.#answerMsMax = answerMsMax
  }

  query<R>(statement: string, parameters: readonly unknown[]): Promise<PostgresQueryResult<R>>
  query<R>(cursor: PostgresCursor<R>): PostgresCursor<R>
  query<R>(
    statement: string | PostgresCursor<R>,
    parameters: readonly unknown[] = [],
  ): Promise<PostgresQueryResult<R>> | PostgresCursor<R> {
    if (typeof statement !== 'string') return this.#client.query(statement)
    // A rollback after the time was up would wait behind what is stuck.
    if (this.#isStuck) return Promise.reject(this.#stuckError())
    return withDeadline(this.#client.query<R>(statement, parameters), {
      timeoutMs: this.#answerMsMax,
      late: () => {
        this.#isStuck = true
        return this.#stuckError()
      },
    })
  }

  release(destroy?: boolean): void {
    this.#client.release(destroy === true || this.#isStuck)
  }

  #stuckError(): Error {
    return new Error(`Connection terminated: no answer in ${this.#answerMsMax} ms`)
  }
}
