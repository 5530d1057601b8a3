import { ApiError } from '../errors.ts'

export type SlotLimits = { downloadsMax: number; perCompanyMax: number; graceMs: number }

/** A download's place among those that run, and the means to stop it. */
export type Slot = Disposable & { stop: AbortController }

const FULL_RETRY_SECONDS = 10

/**
 * Downloads of this node, of which there are so many at once: each holds some pages in memory for as
 * long as its client likes. A company has a share, so that none shuts out the others.
 */
export class DownloadSlots {
  readonly #limits: SlotLimits
  readonly #slots = new Map<Slot, string>()
  #isClosing = false
  #onEmpty: () => void = () => {}

  constructor(limits: SlotLimits) {
    this.#limits = limits
  }

  take(companyId: string): Slot {
    if (this.#isClosing) throw stopping()
    const ofCompany = [...this.#slots.values()].filter((id) => id === companyId).length
    if (ofCompany >= this.#limits.perCompanyMax) throw tooMany('The company has')
    if (this.#slots.size >= this.#limits.downloadsMax) throw tooMany('The service has')
    const slot: Slot = {
      stop: new AbortController(),
      [Symbol.dispose]: () => {
        this.#slots.delete(slot)
        if (this.#slots.size === 0) this.#onEmpty()
      },
    }
    this.#slots.set(slot, companyId)
    return slot
  }

  /** Lets those that run come to their end for a while, then cuts them. Their jobs stay open. */
  async close(): Promise<void> {
    this.#isClosing = true
    if (this.#slots.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#onEmpty = resolve
    const cutAll = () => this.#slots.forEach((_, slot) => slot.stop.abort(stopping()))
    const timer = setTimeout(cutAll, this.#limits.graceMs)
    await promise
    clearTimeout(timer)
  }
}

function tooMany(who: string): ApiError {
  return new ApiError('overloaded', {
    message: `${who} as many downloads as can run at once. Retry after the given delay.`,
    retryAfterSeconds: FULL_RETRY_SECONDS,
  })
}

function stopping(): ApiError {
  return new ApiError('overloaded', { message: 'This node stops. Retry after the given delay.' })
}
