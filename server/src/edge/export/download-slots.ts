import { ApiError } from '../../errors.ts'

/** How many downloads can run at once on a node. */
export type DownloadLimits = {
  downloadsMax: number
  perCompanyMax: number
}

type SlotLimits = DownloadLimits & {
  graceMs: number
  /** A client that has read almost nothing for this long can lose its download to another company. */
  unreadMs: number
}

/** A running download's slot, and a way to stop the download. */
type Slot = Disposable & {
  companyId: string
  stop: AbortController
  /** How many bytes the client's connection has taken. Null while nothing waits for the client. */
  takenBytes: () => number | null
}

export const DOWNLOAD_LIMITS: DownloadLimits = { downloadsMax: 200, perCompanyMax: 50 }
const FULL_RETRY_SECONDS = 10
const CHECKS_PER_LIMIT = 10
/** A client that reads less than this within `unreadMs` counts as not reading. */
const PROGRESS_BYTES = 32_768

/**
 * Limits the concurrent downloads on the node, because each keeps some pages in memory for as long as its
 * client takes. A company gets only a share. On a full node, a company with fewer downloads replaces one of
 * the company with the most, but only one whose client reads almost nothing.
 */
export class DownloadSlots {
  readonly #limits: SlotLimits
  readonly #slots = new Set<Slot>()
  readonly #stalls = new WeakMap<Slot, { takenBytes: number; ms: number }>()
  #timer: NodeJS.Timeout | undefined
  #isClosing = false
  #onEmpty: () => void = () => {}

  constructor(limits: SlotLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#slots.size
  }

  take(companyId: string): Slot {
    if (this.#isClosing) throw stoppingError()
    const { perCompanyMax, downloadsMax } = this.#limits
    const own = [...this.#slots].filter((slot) => slot.companyId === companyId).length
    if (own >= perCompanyMax) throw tooManyDownloadsError('The company')
    if (this.#slots.size >= downloadsMax) this.#cutUnread(own)
    const slot: Slot = {
      companyId,
      stop: new AbortController(),
      takenBytes: () => null,
      [Symbol.dispose]: () => this.#release(slot),
    }
    this.#slots.add(slot)
    this.#timer ??= this.#startTimer()
    return slot
  }

  #release(slot: Slot): void {
    this.#slots.delete(slot)
    if (this.#slots.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#onEmpty()
  }

  /** Makes room for a company that has `own` downloads. */
  #cutUnread(own: number): void {
    const byCompany = Map.groupBy(this.#slots, ({ companyId }) => companyId)
    const unread = [...byCompany.values()]
      .filter((slots) => slots.length > own + 1)
      .toSorted((a, b) => b.length - a.length)
      .map((slots) => slots.toSorted((a, b) => this.#stalledMs(b) - this.#stalledMs(a))[0])
      .find((slot) => slot && this.#stalledMs(slot) >= this.#limits.unreadMs)
    if (!unread) throw tooManyDownloadsError('This node')
    this.#slots.delete(unread)
    unread.stop.abort(replacedError())
  }

  #stalledMs(slot: Slot): number {
    return this.#stalls.get(slot)?.ms ?? 0
  }

  #startTimer(): NodeJS.Timeout {
    const everyMs = this.#limits.unreadMs / CHECKS_PER_LIMIT
    return setInterval(() => this.check(everyMs), everyMs).unref()
  }

  /** Adds up intervals instead of comparing clocks, so that pauses of our own process don't count. */
  check(intervalMs: number): void {
    for (const slot of this.#slots) {
      const takenBytes = slot.takenBytes()
      const last = this.#stalls.get(slot)
      if (takenBytes === null) this.#stalls.delete(slot)
      else if (last && takenBytes < last.takenBytes + PROGRESS_BYTES) last.ms += intervalMs
      else this.#stalls.set(slot, { takenBytes, ms: 0 })
    }
  }

  /** Gives running downloads `graceMs` to finish, then cuts them. Their jobs stay open. */
  async close(): Promise<void> {
    this.#isClosing = true
    if (this.#slots.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    const cutAll = () => this.#slots.forEach((slot) => slot.stop.abort(stoppingError()))
    const timer = setTimeout(cutAll, this.#limits.graceMs)
    await promise
    clearTimeout(timer)
  }
}

function tooManyDownloadsError(who: string): ApiError {
  return new ApiError('overloaded', {
    message: `${who} reached its limit of concurrent downloads. Retry after the delay in the Retry-After header.`,
    retryAfterSeconds: FULL_RETRY_SECONDS,
  })
}

function replacedError(): ApiError {
  return new ApiError('overloaded', {
    message:
      'The client read almost nothing for a while, and another company needed the slot. Download the export again.',
  })
}

function stoppingError(): ApiError {
  return new ApiError('overloaded', {
    message: 'This node is stopping. Retry after the delay in the Retry-After header.',
  })
}
