/** The owner of work, such as a company's id. All of the service's own work has the same owner. */
export type SliceOwner = string
export const SERVICE: SliceOwner = ''

/** Usage decays with this time constant, so it is roughly the CPU time of the last two seconds. */
const DECAY_MS = 2_000
/**
 * An owner whose recent usage is below this doesn't pause. The same limit applies to all owners together. A
 * 4 MB batch of ordinary events needs less.
 */
const FREE_MS = 250
/** Above that, a pause of three times the work leaves an owner a quarter of the thread. */
const OWNER_PAUSE_RATIO = 3
/** All owners together get half of the thread. */
const SHARED_PAUSE_RATIO = 1
/** The shortest pause that timers support. Shorter pauses add up until they reach it. */
const PAUSE_MS_MIN = 1
const FORGET_MS = 5 * DECAY_MS

/** Work that has just ended. `wallMs` is the time it cost other requests, `cpuMs` the time its owner used. */
type Work = { cpuMs: number; wallMs: number }

/**
 * Tracks how much of the main thread each owner has used recently, and how long an owner with high usage
 * has to pause. All owners together pause too, unless `isSharedLimited` is false. No owner pauses while no
 * other one is active.
 */
export class ThreadShare {
  readonly #nowMs: () => number
  readonly #isContended: (owner: SliceOwner) => boolean
  readonly #freeMs: number
  readonly #lightMs: number
  readonly #pauseRatio: number
  /** Ordered by the time of the last charge, the most recent last. */
  readonly #usage = new Map<SliceOwner, Usage>()
  /** Null if only owners are limited. */
  readonly #sharedUsage: Usage | null

  constructor({
    nowMs,
    isContended,
    freeMs = FREE_MS,
    lightMs = 0,
    pauseRatio = OWNER_PAUSE_RATIO,
    isSharedLimited = true,
  }: {
    nowMs: () => number
    /** Whether an owner other than this one is active. */
    isContended: (owner: SliceOwner) => boolean
    /** Recent usage up to this costs no pause. */
    freeMs?: number
    /** An owner whose recent usage is below this doesn't pause. */
    lightMs?: number
    /** How much longer than its work an owner pauses. */
    pauseRatio?: number
    /** Whether all owners together are limited. */
    isSharedLimited?: boolean
  }) {
    this.#nowMs = nowMs
    this.#isContended = isContended
    this.#freeMs = freeMs
    this.#sharedUsage = isSharedLimited
      ? new Usage({ freeMs, pauseRatio: SHARED_PAUSE_RATIO })
      : null
    this.#lightMs = lightMs
    this.#pauseRatio = pauseRatio
  }

  charge(owner: SliceOwner, work: Work): void {
    if (owner === SERVICE) return
    const nowMs = this.#nowMs()
    const usage = this.#usage.get(owner) ?? this.#createUsage()
    this.#usage.delete(owner)
    this.#usage.set(owner, usage)
    const isContended = this.#isContended(owner)
    usage.add(work, { nowMs, isContended })
    this.#sharedUsage?.add(work, { nowMs, isContended })
    for (const [other, { updatedAtMs }] of this.#usage) {
      if (nowMs - updatedAtMs < FORGET_MS) break
      this.#usage.delete(other)
    }
  }

  #createUsage(): Usage {
    return new Usage({ freeMs: this.#freeMs, pauseRatio: this.#pauseRatio })
  }

  /** How long the owner has to wait until it can use the thread again. Zero if it can now. */
  pauseMs(owner: SliceOwner): number {
    if (owner === SERVICE || !this.#isContended(owner)) return 0
    const ownerAtMs = this.#usage.get(owner)?.readyAtMs ?? 0
    const readyAtMs = Math.max(ownerAtMs, this.#sharedUsage?.readyAtMs ?? 0)
    const pauseMs = Math.min(readyAtMs - this.#nowMs(), this.#untilLightMs(owner))
    return pauseMs < PAUSE_MS_MIN ? 0 : pauseMs
  }

  /** How long it takes until the owner's recent usage is below `lightMs`. */
  #untilLightMs(owner: SliceOwner): number {
    if (this.#lightMs === 0) return Number.POSITIVE_INFINITY
    return DECAY_MS * Math.log(this.usedMs(owner) / this.#lightMs)
  }

  /** Whether the owner's recent usage is so high that it pauses. */
  isOver(owner: SliceOwner): boolean {
    return this.usedMs(owner) > this.#freeMs && this.#isContended(owner)
  }

  /** The CPU time that the owner has used recently. */
  usedMs(owner: SliceOwner): number {
    return this.#usage.get(owner)?.usedMsAt(this.#nowMs()) ?? 0
  }
}

class Usage {
  readonly #freeMs: number
  readonly #pauseRatio: number
  #usedMs = 0
  updatedAtMs = 0
  readyAtMs = 0

  constructor({ freeMs, pauseRatio }: { freeMs: number; pauseRatio: number }) {
    this.#freeMs = freeMs
    this.#pauseRatio = pauseRatio
  }

  usedMsAt(nowMs: number): number {
    return this.#usedMs * Math.exp((this.updatedAtMs - nowMs) / DECAY_MS)
  }

  /** Usage is CPU time. Pauses depend on wall time, because that is what the work costs other requests. */
  add(
    { cpuMs, wallMs }: Work,
    { nowMs, isContended }: { nowMs: number; isContended: boolean },
  ): void {
    this.#usedMs = this.usedMsAt(nowMs) + cpuMs
    this.updatedAtMs = nowMs
    if (this.#usedMs <= this.#freeMs || !isContended) return
    const startedAtMs = nowMs - wallMs
    this.readyAtMs = Math.max(this.readyAtMs, startedAtMs) + wallMs * (1 + this.#pauseRatio)
  }
}
