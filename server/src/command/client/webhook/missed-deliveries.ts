import type { Annals } from '../../../../../sdk/src/annals.ts'
import type { Delivery, Event } from '../../../../../sdk/src/resource/types.ts'
import { GapDetector, type SequenceRange } from '../../../../../sdk/src/webhook/gap-detector.ts'

/** Deliveries arrive in any order, so a gap may still close. */
const GRACE_MS = 3_000
/** The wait doubles up to this while a gap stays open. */
const WAIT_MS_MAX = 60_000
/** The sequence number is not signed, and a jump costs memory and time. */
const JUMP_MAX = 1_000_000
/** The service is still sending these. */
const IN_PROGRESS: readonly string[] = ['PENDING', 'SENDING']

type MissedOptions = {
  annals: Annals
  /** Null if only the secret is known. Missing deliveries are then reported, but can't be read. */
  webhookId: string | null
  /** The webhook is new, so its first delivery is number 1. */
  isNew: boolean
  signal: AbortSignal
  show: (delivery: Delivery, event: Event | null) => Promise<void>
  note: (sentence: string) => void
}

/** Finds the deliveries that never arrived here, and reads their events with the API. */
export class MissedDeliveries implements Disposable {
  readonly #options: MissedOptions
  #gaps: GapDetector | null
  #timer: NodeJS.Timeout | null = null
  #isChecking = false
  #waitMs = GRACE_MS

  constructor(options: MissedOptions) {
    this.#options = options
    this.#gaps = options.isNew ? new GapDetector() : null
  }

  /** Whether a delivery of this webhook can have this number. */
  accepts(sequence: number): boolean {
    if (!Number.isSafeInteger(sequence) || sequence < 1) return false
    if (this.#gaps === null) return true
    const { watermark, seen } = this.#gaps.state
    return sequence - (seen.at(-1)?.to ?? watermark) <= JUMP_MAX
  }

  /** Notes a delivery that arrived. */
  add(sequence: number): void {
    // What an existing webhook sent before the command started is not missing.
    this.#gaps ??= new GapDetector({ watermark: sequence - 1, seen: [] })
    const before = this.#gaps.missing().length
    this.#gaps.add(sequence)
    if (this.#gaps.missing().length > before) this.#resetWait()
    this.#checkLater(this.#gaps)
  }

  /** A new gap doesn't wait as long as an old one. */
  #resetWait(): void {
    if (this.#waitMs === GRACE_MS) return
    this.#waitMs = GRACE_MS
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }

  #checkLater(gaps: GapDetector): void {
    const isWaiting = this.#timer !== null || this.#isChecking
    if (isWaiting || this.#options.signal.aborted) return
    if (gaps.missing().length === 0) {
      this.#waitMs = GRACE_MS
      return
    }
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.#isChecking = true
      this.#waitMs = Math.min(this.#waitMs * 2, WAIT_MS_MAX)
      void this.#check(gaps).then(() => {
        this.#isChecking = false
        this.#checkLater(gaps)
      })
    }, this.#waitMs)
  }

  async #check(gaps: GapDetector): Promise<void> {
    const { webhookId, signal, note } = this.#options
    const missing = gaps.missing()
    if (missing.length === 0 || signal.aborted) return
    try {
      if (webhookId !== null) return await this.#replay(webhookId, gaps, missing)
      note(
        `annals: Missing deliveries: ${missing.map(rangeText).join(', ')}. With --webhook ID, they are replayed.`,
      )
    } catch (error) {
      if (signal.aborted) return
      const reason = error instanceof Error ? error.message : String(error)
      note(
        `annals: Missing deliveries can't be read (${reason}): ${missing.map(rangeText).join(', ')}.`,
      )
    }
    // Each gap is reported once.
    for (const { from, to } of missing) {
      for (let sequence = from; sequence <= to; sequence += 1) gaps.add(sequence)
    }
  }

  async #replay(
    webhookId: string,
    gaps: GapDetector,
    missing: readonly SequenceRange[],
  ): Promise<void> {
    const { annals, signal, show } = this.#options
    const last = missing.at(-1)?.to ?? 0
    const deliveries = annals.webhooks.deliveries(
      webhookId,
      { afterSequence: gaps.watermark },
      { signal },
    )
    for await (const delivery of deliveries) {
      const { sequence, status, isTest, eventId } = delivery
      if (sequence > last) break
      if (IN_PROGRESS.includes(status) || !isIn(missing, sequence)) continue
      // It may have arrived while an earlier event was read.
      if (!gaps.add(sequence)) continue
      await show(delivery, isTest ? null : await annals.events.get(eventId, { signal }))
    }
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
  }
}

function isIn(ranges: readonly SequenceRange[], sequence: number): boolean {
  return ranges.some(({ from, to }) => sequence >= from && sequence <= to)
}

function rangeText({ from, to }: SequenceRange): string {
  return from === to ? String(from) : `${from}–${to}`
}
