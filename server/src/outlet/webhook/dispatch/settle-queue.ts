import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../../../platform/logger.ts'
import { isOutage, sqlStateOf } from '../../../platform/pg/database.ts'
import type { SettledWebhook } from './settle-store.ts'
import type { Settlement } from './settlement.ts'

/** Attempts that end within this time share a commit. */
const GATHER_MS = 20
const SETTLEMENTS_PER_WRITE_MAX = 500
const RETRY_MS = 250

type SettleQueueOptions = {
  write: (settlements: readonly Settlement[]) => Promise<SettledWebhook[]>
  onSettled: (webhooks: readonly SettledWebhook[]) => void
  logger: Logger
}

type Waiting = {
  settlement: Settlement
  resolve: () => void
  /** The size limit of its next write. Below the maximum after a write was rejected. */
  batchMax: number
}

/**
 * Writes the results of attempts, many per statement, one statement at a time. A result that can't be written
 * stays in the queue, because losing it would cause a second delivery. The dispatcher's limit on deliveries
 * also limits the queue.
 *
 * During an outage the queue waits. If the database rejects a write, for example because of the statement
 * timeout, its workspaces move to the end of the queue. From then on each of them has separate writes, half
 * the size after each rejection, so only the workspace that causes the rejections waits.
 */
export class SettleQueue implements AsyncDisposable {
  readonly #options: SettleQueueOptions
  #waiting: Waiting[] = []
  #writer: Promise<void> | null = null
  #isClosing = false

  constructor(options: SettleQueueOptions) {
    this.#options = options
  }

  /** Resolves when the result is written and counted, or can never be written. */
  add(settlement: Settlement): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push({ settlement, resolve, batchMax: SETTLEMENTS_PER_WRITE_MAX })
    this.#writer ??= this.#drain()
    return promise
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      await delay(GATHER_MS)
      const batch = this.#nextBatch()
      try {
        const webhooks = await this.#options.write(batch.map(({ settlement }) => settlement))
        this.#end(batch, webhooks)
      } catch (error) {
        this.#options.logger.warn({ event: 'settle.failed', deliveries: batch.length, err: error })
        const isBad = isBadValue(error)
        // No retry can write it, so it is dropped and its lease expires.
        if (isBad && batch.length === 1) this.#end(batch, [])
        else if (!isOutage(error)) this.#postpone(batch)
        if (isBad) continue
        // On shutdown, don't wait for the database to return: the leases will expire.
        if (this.#isClosing) break
        await delay(RETRY_MS)
      }
    }
    this.#writer = null
  }

  #nextBatch(): Waiting[] {
    const [first] = this.#waiting
    if (!first) return []
    const { batchMax, settlement } = first
    const workspaceOf = (one: Waiting) => one.settlement.workspaceId
    const rejected = new Set(this.#waiting.filter(isRejected).map(workspaceOf))
    const mayShare = (one: Waiting): boolean =>
      rejected.has(settlement.workspaceId)
        ? workspaceOf(one) === settlement.workspaceId && one.batchMax >= batchMax
        : !rejected.has(workspaceOf(one))
    return this.#waiting.filter(mayShare).slice(0, batchMax)
  }

  /**
   * Moves all results of the batch's workspaces behind the others, so that others wait for only one failed
   * write. Keeps the order within each workspace, because failures are counted since the last success. Only a
   * result that fails on its own moves behind the others of its workspace.
   */
  #postpone(batch: readonly Waiting[]): void {
    for (const one of batch) one.batchMax = Math.ceil(batch.length / 2)
    const workspaceIds = new Set(batch.map(({ settlement }) => settlement.workspaceId))
    const isPostponed = (one: Waiting) => workspaceIds.has(one.settlement.workspaceId)
    const isLast = (one: Waiting) => batch.length === 1 && batch.includes(one)
    this.#waiting = [
      ...this.#waiting.filter((one) => !isPostponed(one)),
      ...this.#waiting.filter((one) => isPostponed(one) && !isLast(one)),
      ...this.#waiting.filter(isLast),
    ]
  }

  #end(batch: readonly Waiting[], webhooks: readonly SettledWebhook[]): void {
    const ended = new Set(batch)
    this.#waiting = this.#waiting.filter((one) => !ended.has(one))
    try {
      this.#options.onSettled(webhooks)
    } finally {
      for (const { resolve } of batch) resolve()
    }
  }

  /** From now on, failed writes are not retried. */
  close(): void {
    this.#isClosing = true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
    await this.#writer
  }
}

function isRejected({ batchMax }: Waiting): boolean {
  return batchMax < SETTLEMENTS_PER_WRITE_MAX
}

/** SQLSTATE class 22: PostgreSQL rejects this value, however often it is retried. */
function isBadValue(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('22') === true
}
