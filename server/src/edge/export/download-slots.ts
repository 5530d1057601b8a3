import { ApiError } from '../../errors.ts'

type SlotLimits = { downloadsMax: number; perCompanyMax: number; graceMs: number }

/** A running download's slot, and a way to stop the download. */
type Slot = Disposable & { stop: AbortController }

const FULL_RETRY_SECONDS = 10

/**
 * Limits the concurrent downloads on the node, because each keeps some pages in memory for as long as its
 * client takes. A company gets only a share, so that it can't block the others.
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
    if (ofCompany >= this.#limits.perCompanyMax) throw tooMany('The company')
    if (this.#slots.size >= this.#limits.downloadsMax) throw tooMany('This node')
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

  /** Gives running downloads `graceMs` to finish, then cuts them. Their jobs stay open. */
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
    message: `${who} reached its limit of concurrent downloads. Retry after the delay in the Retry-After header.`,
    retryAfterSeconds: FULL_RETRY_SECONDS,
  })
}

function stopping(): ApiError {
  return new ApiError('overloaded', {
    message: 'This node is stopping. Retry after the delay in the Retry-After header.',
  })
}
