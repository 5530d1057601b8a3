import type { CompanyId } from '../../platform/id.ts'

export type PacerTimers = {
  nowMs: () => number
  after: (delayMs: number, run: () => void) => void
  inNextTurn: (run: () => void) => void
}

/** Usage fades with this time constant, so it is about the time of the last two seconds. */
const LATELY_MS = 2_000
/** A company that used less than this lately doesn't pause. The limit for all together is the same. */
const FREE_MS = 250
/** A company that used less than this lately, about 40 deliveries per second, never pauses for others. */
const LIGHT_MS = 25
/** A pause of three times the cost leaves a company a quarter of the thread. */
const COMPANY_PAUSE_RATIO = 3
/** All companies together get half of it. */
const SHARED_PAUSE_RATIO = 1
/** Timers can't wait for less. Shorter pauses add up until they are as long. */
const PAUSE_MS_MIN = 1
/** For all sends in one turn of the event loop. */
const TURN_MS_MAX = 2
/**
 * The time measured here, about 50 µs, is a sixth of what a delivery costs. Connections, responses, rows and
 * outcomes take the rest, in callbacks that can't be attributed to a company.
 */
const COST_RATIO = 6
const FORGET_MS = 5 * LATELY_MS

const SYSTEM_TIMERS: PacerTimers = {
  nowMs: () => performance.now(),
  after: (delayMs, run) => void setTimeout(run, delayMs),
  inNextTurn: (run) => void setImmediate(run),
}

export type Pacing = {
  /** Whether a company other than this one has active requests on this node. */
  isContended: (companyId: CompanyId) => boolean
  timers?: PacerTimers
}

/**
 * Limits how much of the main thread deliveries use while requests of other companies are active, so that
 * one company's deliveries don't delay another's events. Companies take turns. Otherwise, every item is
 * sent immediately.
 */
export class SendPacer<Item> {
  readonly #send: (item: Item) => void
  readonly #isContended: (companyId: CompanyId) => boolean
  readonly #timers: PacerTimers
  /** The company that sent last is the last one. */
  readonly #waiting = new Map<CompanyId, Item[]>()
  /** The company that was charged last is the last one. */
  readonly #usage = new Map<CompanyId, Usage>()
  readonly #sharedUsage = new Usage(SHARED_PAUSE_RATIO)
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

  /** Removes items of the company that wait, and returns them. */
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
    return this.#turnMs < TURN_MS_MAX && this.#pauseMs(companyId) === 0
  }

  #sendNow(companyId: CompanyId, item: Item): void {
    this.charge(companyId, () => this.#send(item))
  }

  #note(companyId: CompanyId, startedAtMs: number): void {
    const nowMs = this.#timers.nowMs()
    const usage = this.#usage.get(companyId) ?? new Usage(COMPANY_PAUSE_RATIO)
    this.#usage.delete(companyId)
    this.#usage.set(companyId, usage)
    const costMs = (nowMs - startedAtMs) * COST_RATIO
    const used = { startedAtMs, costMs, isContended: this.#isContended(companyId) }
    usage.add(used, nowMs)
    this.#sharedUsage.add(used, nowMs)
    for (const [other, { updatedAtMs }] of this.#usage) {
      if (nowMs - updatedAtMs < FORGET_MS) break
      this.#usage.delete(other)
    }
    this.#turnMs += nowMs - startedAtMs
    this.#startTurn()
  }

  /** The next turn of the event loop has its own time. */
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
      const ready = this.#waiting.keys().find((companyId) => this.#pauseMs(companyId) === 0)
      if (ready === undefined) break
      const items = this.#waiting.get(ready) ?? []
      const item = items.shift()
      this.#waiting.delete(ready)
      if (items.length > 0) this.#waiting.set(ready, items)
      if (item !== undefined) this.#sendNow(ready, item)
    }
    if (this.#waiting.size > 0) this.#schedule()
  }

  /** In the next turn of the event loop, or when the first pause ends. */
  #schedule(): void {
    const pauseMs = Math.min(...this.#waiting.keys().map((companyId) => this.#pauseMs(companyId)))
    if (pauseMs === 0) return this.#startTurn()
    if (this.#isTimerSet) return
    this.#isTimerSet = true
    this.#timers.after(pauseMs, () => {
      this.#isTimerSet = false
      this.#startTurn()
    })
  }

  /** Zero if the company can send now. */
  #pauseMs(companyId: CompanyId): number {
    if (!this.#isContended(companyId)) return 0
    const nowMs = this.#timers.nowMs()
    const usage = this.#usage.get(companyId)
    if (!usage || usage.usedMsAt(nowMs) < LIGHT_MS) return 0
    const pauseMs = Math.max(usage.readyAtMs, this.#sharedUsage.readyAtMs) - nowMs
    return pauseMs < PAUSE_MS_MIN ? 0 : pauseMs
  }
}

/** How much of the thread was used lately, and when the next send can start. */
class Usage {
  readonly #pauseRatio: number
  #usedMs = 0
  updatedAtMs = 0
  readyAtMs = 0

  constructor(pauseRatio: number) {
    this.#pauseRatio = pauseRatio
  }

  add(used: { startedAtMs: number; costMs: number; isContended: boolean }, nowMs: number): void {
    this.#usedMs = this.usedMsAt(nowMs) + used.costMs
    this.updatedAtMs = nowMs
    if (this.#usedMs <= FREE_MS || !used.isContended) return
    const costMs = used.costMs * (1 + this.#pauseRatio)
    this.readyAtMs = Math.max(this.readyAtMs, used.startedAtMs) + costMs
  }

  usedMsAt(nowMs: number): number {
    return this.#usedMs * Math.exp((this.updatedAtMs - nowMs) / LATELY_MS)
  }
}
