import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../../platform/logger.ts'
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
  readonly #waiting: Settlement[] = []
  #writer: Promise<void> | null = null
  #isClosing = false

  constructor(options: SettleQueueOptions) {
    this.#options = options
  }

  add(settlement: Settlement): void {
    this.#waiting.push(settlement)
    this.#writer ??= this.#drain()
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      await delay(GATHER_MS)
      const batch = this.#waiting.slice(0, SETTLEMENTS_PER_WRITE_MAX)
      try {
        const webhooks = await this.#options.write(batch)
        this.#waiting.splice(0, batch.length)
        this.#options.onSettled(webhooks)
      } catch (error) {
        this.#options.logger.warn({ event: 'settle.failed', deliveries: batch.length, err: error })
        // On the way out nobody waits for a database that is gone: the leases will lapse.
        if (this.#isClosing) break
        await delay(RETRY_MS)
      }
    }
    this.#writer = null
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true
    await this.#writer
  }
}
