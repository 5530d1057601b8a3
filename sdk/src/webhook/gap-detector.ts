/** The numbers from `from` up to `to`, both included. */
export type SequenceRange = { from: number; to: number }

/** What `GapDetector` has seen, to be stored as JSON. */
export type GapState = { watermark: number; seen: readonly SequenceRange[] }

const RANGES_MAX = 1_000

/**
 * Finds the deliveries of one webhook that never arrived: their `sequence` numbers have no gaps. Deliveries
 * arrive in any order and retries arrive late, so ask for `missing` only some time after you last saw one.
 *
 * ```ts
 * gaps.add(delivery.sequence)
 * // later, if gaps.missing() isn't empty:
 * annals.webhooks.deliveries(webhookId, { afterSequence: gaps.watermark })
 * ```
 */
export class GapDetector {
  #watermark: number
  /** Sorted, disjoint, not adjacent, and all above the watermark. */
  #seen: SequenceRange[]

  /** With the `state` of an earlier detector, continues where that one was. */
  constructor(state: GapState = { watermark: 0, seen: [] }) {
    this.#watermark = state.watermark
    this.#seen = state.seen.map((range) => ({ ...range }))
  }

  /** Every delivery up to this one has arrived. Pass it as `afterSequence` to list what follows. */
  get watermark(): number {
    return this.#watermark
  }

  get state(): GapState {
    return { watermark: this.#watermark, seen: this.#seen.map((range) => ({ ...range })) }
  }

  /**
   * Notes that a delivery has arrived. Returns false if it had before. With more than 1,000 gaps, a delivery
   * that would open another one is not noted, so that it is reported as missing later, never the reverse.
   */
  add(sequence: number): boolean {
    if (!Number.isSafeInteger(sequence) || sequence < 1) {
      throw new RangeError('The sequence number must be a positive integer.')
    }
    if (sequence <= this.#watermark) return false
    const at = this.#seen.findIndex(({ to }) => to >= sequence - 1)
    const range = this.#seen[at]
    if (range === undefined) this.#append(sequence)
    else if (sequence >= range.from && sequence <= range.to) return false
    else if (sequence === range.to + 1) this.#extend(at, sequence)
    else if (sequence === range.from - 1) range.from = sequence
    else this.#insert(at, sequence)
    this.#advance()
    return true
  }

  /** The numbers that are missing below the highest that has arrived. */
  missing(): SequenceRange[] {
    let next = this.#watermark + 1
    return this.#seen.map(({ from, to }) => {
      const gap = { from: next, to: from - 1 }
      next = to + 1
      return gap
    })
  }

  #append(sequence: number): void {
    this.#insert(this.#seen.length, sequence)
  }

  #insert(at: number, sequence: number): void {
    const isNext = sequence === this.#watermark + 1
    if (this.#seen.length >= RANGES_MAX && !isNext) return
    this.#seen.splice(at, 0, { from: sequence, to: sequence })
  }

  #extend(at: number, sequence: number): void {
    const [range, following] = this.#seen.slice(at)
    if (!range) return
    range.to = sequence
    if (following?.from !== sequence + 1) return
    range.to = following.to
    this.#seen.splice(at + 1, 1)
  }

  #advance(): void {
    const [first] = this.#seen
    if (first?.from !== this.#watermark + 1) return
    this.#watermark = first.to
    this.#seen.shift()
  }
}
