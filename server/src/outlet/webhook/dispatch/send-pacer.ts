import type { CompanyId } from '../../../platform/id.ts'
import { type SliceOwner, ThreadShare } from '../../../platform/scheduling/thread-share.ts'

export type PacerTimers = {
  nowMs: () => number
  after: (delayMs: number, run: () => void) => void
  inNextTurn: (run: () => void) => void
}

/** A company that used less than this lately, about 40 deliveries per second, never pauses for others. */
const LIGHT_MS = 25
/** For all sends in one iteration of the event loop. */
const TURN_MS_MAX = 2
/**
 * The time measured here, about 50 µs, is a sixth of what a delivery costs. Connections, responses, rows and
 * outcomes take the rest, in callbacks that can't be attributed to a company.
 */
const COST_RATIO = 6

const SYSTEM_TIMERS: PacerTimers = {
  nowMs: () => performance.now(),
  after: (delayMs, run) => void setTimeout(run, delayMs),
  inNextTurn: (run) => void setImmediate(run),
}

export type Pacing = {
  /** Whether a company other than this one has active requests on this node. */
  isContended: (companyId: SliceOwner) => boolean
  timers?: PacerTimers
}

/**
 * Limits how much of the main thread deliveries use while requests of other companies are active, so that
 * one company's deliveries don't delay another's events. Companies take turns. Otherwise, every item is
 * sent immediately.
 */
export class SendPacer<Item> {
  readonly #send: (item: Item) => void
  readonly #isContended: (companyId: SliceOwner) => boolean
  readonly #timers: PacerTimers
  /** In round-robin order: the company that sent last is at the end. */
  readonly #waiting = new Map<CompanyId, Item[]>()
  readonly #share: ThreadShare
  #turnMs = 0
  #isTurnScheduled = false
  #isTimerSet = false

  constructor({
    send,
    isContended,
    timers = SYSTEM_TIMERS,
  }: Pacing & { send: (item: Item) => void }) {
    this.#send = send
    this.#isContended = isContended
    this.#timers = timers
    this.#share = new ThreadShare({ nowMs: timers.nowMs, isContended, lightMs: LIGHT_MS })
  }

  add(companyId: CompanyId, item: Item): void {
    const ofCompany = this.#waiting.get(companyId)
    if (ofCompany) {
      ofCompany.push(item)
    } else if (this.#canSend(companyId)) {
      this.#sendNow(companyId, item)
    } else {
      this.#waiting.set(companyId, [item])
      this.#schedule()
    }
  }

  /** Runs work that belongs to the company's deliveries and can't wait. */
  charge<T>(companyId: CompanyId, work: () => T): T {
    const startedAtMs = this.#timers.nowMs()
    try {
      return work()
    } finally {
      this.#note(companyId, startedAtMs)
    }
  }

  /** Removes and returns waiting items of the company. */
  take(companyId: CompanyId, isTaken: (item: Item) => boolean): Item[] {
    const ofCompany = this.#waiting.get(companyId) ?? []
    const kept = ofCompany.filter((item) => !isTaken(item))
    if (kept.length > 0) this.#waiting.set(companyId, kept)
    else this.#waiting.delete(companyId)
    return ofCompany.filter(isTaken)
  }

  takeAll(): Item[] {
    const all = [...this.#waiting.values()].flat()
    this.#waiting.clear()
    return all
  }

  #canSend(companyId: CompanyId): boolean {
    if (!this.#isContended(companyId)) return true
    return this.#turnMs < TURN_MS_MAX && this.#share.pauseMs(companyId) === 0
  }

  #sendNow(companyId: CompanyId, item: Item): void {
    this.charge(companyId, () => this.#send(item))
  }

  #note(companyId: CompanyId, startedAtMs: number): void {
    const sendMs = this.#timers.nowMs() - startedAtMs
    const costMs = sendMs * COST_RATIO
    this.#share.charge(companyId, { cpuMs: costMs, wallMs: costMs })
    this.#turnMs += sendMs
    this.#startTurn()
  }

  /** Resets the time budget in the next iteration of the event loop. */
  #startTurn(): void {
    if (this.#isTurnScheduled) return
    this.#isTurnScheduled = true
    this.#timers.inNextTurn(() => {
      this.#isTurnScheduled = false
      this.#turnMs = 0
      this.#drain()
    })
  }

  #drain(): void {
    while (this.#turnMs < TURN_MS_MAX) {
      const ready = this.#waiting.keys().find((companyId) => this.#share.pauseMs(companyId) === 0)
      if (ready === undefined) break
      const items = this.#waiting.get(ready) ?? []
      const item = items.shift()
      this.#waiting.delete(ready)
      if (items.length > 0) this.#waiting.set(ready, items)
      if (item !== undefined) this.#sendNow(ready, item)
    }
    if (this.#waiting.size > 0) this.#schedule()
  }

  /** Schedules sending for the next iteration of the event loop, or for when the first pause ends. */
  #schedule(): void {
    const pauseMs = Math.min(
      ...this.#waiting.keys().map((companyId) => this.#share.pauseMs(companyId)),
    )
    if (pauseMs === 0) return this.#startTurn()
    if (this.#isTimerSet) return
    this.#isTimerSet = true
    this.#timers.after(pauseMs, () => {
      this.#isTimerSet = false
      this.#startTurn()
    })
  }
}
