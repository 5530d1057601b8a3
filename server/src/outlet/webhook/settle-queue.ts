import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../../platform/logger.ts'
import { sqlStateOf } from '../../platform/pg.ts'
import type { SettledWebhook, Settlement } from './settle-store.ts'

/** Lets the ends of a few milliseconds share a commit. */
const GATHER_MS = 5
const SETTLEMENTS_PER_WRITE_MAX = 500
const RETRY_MS = 250

type SettleQueueOptions = {
  write: (settlements: readonly Settlement[]) => Promise<SettledWebhook[]>
  onSettled: (webhooks: readonly SettledWebhook[]) => void
  logger: Logger
}

/**
 * Writes the ends of attempts, many in one statement, one statement at a time. What cannot be written
 * stays and is tried again: an end that was lost would be a second delivery. It holds no more than the
 * deliveries that the dispatcher holds, which are bounded.
 */
export class SettleQueue implements AsyncDisposable {
  readonly #options: SettleQueueOptions
  readonly #waiting: { settlement: Settlement; resolve: () => void }[] = []
  #writer: Promise<void> | null = null
  #isClosing = false

  constructor(options: SettleQueueOptions) {
    this.#options = options
  }

  /** Resolves when it is written and counted, or is given up for good. */
  add(settlement: Settlement): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push({ settlement, resolve })
    this.#writer ??= this.#drain()
    return promise
  }

  async #drain(): Promise<void> {
    let countMax = SETTLEMENTS_PER_WRITE_MAX
    while (this.#waiting.length > 0) {
      await delay(GATHER_MS)
      const batch = this.#waiting.slice(0, countMax)
      try {
        const webhooks = await this.#options.write(batch.map(({ settlement }) => settlement))
        countMax = SETTLEMENTS_PER_WRITE_MAX
        this.#end(batch.length, webhooks)
      } catch (error) {
        this.#options.logger.warn({ event: 'settle.failed', deliveries: batch.length, err: error })
        if (isBadValue(error)) {
          // It would hold up all the others for ever: found by halving, it is left to its lease.
          countMax = Math.ceil(batch.length / 2)
          if (batch.length === 1) this.#end(1, [])
          continue
        }
        // A service that stops doesn't wait for the database to return: the leases will lapse.
        if (this.#isClosing) break
        await delay(RETRY_MS)
      }
    }
    this.#writer = null
  }

  #end(count: number, webhooks: readonly SettledWebhook[]): void {
    const ended = this.#waiting.splice(0, count)
    try {
      this.#options.onSettled(webhooks)
    } finally {
      for (const { resolve } of ended) resolve()
    }
  }

  /** From now on, a write that fails is not retried. */
  close(): void {
    this.#isClosing = true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
    await this.#writer
  }
}

/** SQLSTATE class 22: PostgreSQL will not take this value, however often it is offered. */
function isBadValue(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('22') === true
}
