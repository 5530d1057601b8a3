/** Whose work a slice is, such as a company's id. All of the service's own work has one owner. */
export type SliceOwner = string
export const SERVICE: SliceOwner = ''

export type SliceTimers = {
  nowMs: () => number
  /** CPU time of this thread. Unlike the wall clock, it stands still while other processes run. */
  cpuMs: () => number
  /** Returns a function that cancels the call. */
  after: (delayMs: number, run: () => void) => () => void
}

/** Usage fades with this time constant, so it is about the CPU time of the last two seconds. */
const LATELY_MS = 2_000
/**
 * An owner that has used less than this lately doesn't pause. The same limit applies to all owners
 * together. A 4 MB batch of ordinary events needs less.
 */
const FREE_MS = 250
/** After that, a pause of three times the slice leaves an owner a quarter of the thread. */
const OWNER_PAUSE_RATIO = 3
/** And all owners together get half of it. */
const SHARED_PAUSE_RATIO = 1
/** For all short work in one turn of the event loop. */
const SHORT_MS_MAX = 10
/** Timers can't wait for less. Shorter pauses add up until they are as long. */
const PAUSE_MS_MIN = 1
const FORGET_MS = 5 * LATELY_MS
/** An owner that sent nothing for this long doesn't need the thread. */
const ACTIVE_MS = 1_000

const SYSTEM_TIMERS: SliceTimers = {
  nowMs: () => performance.now(),
  cpuMs: () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1_000
  },
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  },
}

/**
 * Decides whose slice of work runs next: at most one per turn of the event loop. If each caller waited for
 * the next turn on its own, a hundred of them would make that turn last half a second. Owners get their
 * slices in turn, so one that has a hundred requests delays another's by one slice at a time.
 *
 * A request that isn't sliced needs several turns. If each of them had a slice in it, one owner could make
 * all requests ten times slower. So an owner that used much lately pauses after each slice, and so do all
 * owners together, unless no other owner is active. The service's own work isn't paced.
 *
 * Short work, such as parsing a small body, doesn't wait for a slice, but all of it together has only a few
 * milliseconds per turn. It counts as used by its owner.
 */
export class SliceQueue {
  readonly #timers: SliceTimers
  readonly #waiting = new Map<SliceOwner, (() => void)[]>()
  /** The owner that ran last is the last one. */
  readonly #usage = new Map<SliceOwner, Usage>()
  readonly #sharedUsage = new Usage(SHARED_PAUSE_RATIO)
  readonly #active: [newest: Activity, other: Activity] = [
    { owner: SERVICE, atMs: Number.NEGATIVE_INFINITY },
    { owner: SERVICE, atMs: Number.NEGATIVE_INFINITY },
  ]
  #running: { owner: SliceOwner; startedAtMs: number; cpuMsBefore: number } | null = null
  /** Short work that found no time left in its turn. */
  readonly #shorts: (() => void)[] = []
  #shortMs = 0
  #isDrainScheduled = false
  #isScheduled = false
  #cancelTimer: (() => void) | null = null

  constructor(timers: SliceTimers = SYSTEM_TIMERS) {
    this.#timers = timers
  }

  /** Call it for every request, so that other owners leave time for it. */
  noteActivity(owner: SliceOwner): void {
    const [newest, other] = this.#active
    if (owner !== newest.owner) {
      other.owner = newest.owner
      other.atMs = newest.atMs
      newest.owner = owner
    }
    newest.atMs = this.#timers.nowMs()
  }

  /** Resolves when the owner can run a slice. The slice ends with the first turn of the event loop. */
  next(owner: SliceOwner): Promise<void> {
    return new Promise((resolve) => {
      const ofOwner = this.#waiting.get(owner)
      if (ofOwner) {
        ofOwner.push(resolve)
      } else {
        this.#waiting.set(owner, [resolve])
        this.#schedule()
      }
    })
  }

  /**
   * Runs work of a few milliseconds: immediately if this turn has time left, otherwise in a later one. If
   * the owner has used more than its share lately, the work waits for a slice.
   */
  runShort<T>(owner: SliceOwner, work: () => T): T | Promise<Awaited<T>> {
    if (this.#pauseMs(owner) > 0) return this.#runInSlice(owner, work)
    if (this.#shorts.length > 0 || this.#shortMs >= SHORT_MS_MAX) return this.#runLater(owner, work)
    return this.#runNow(owner, work)
  }

  async #runInSlice<T>(owner: SliceOwner, work: () => T): Promise<Awaited<T>> {
    await this.next(owner)
    return await work()
  }

  async #runLater<T>(owner: SliceOwner, work: () => T): Promise<Awaited<T>> {
    const { promise, resolve } = Promise.withResolvers<T | Promise<Awaited<T>>>()
    this.#shorts.push(() => {
      const isPaused = this.#pauseMs(owner) > 0
      const run = () => (isPaused ? this.#runInSlice(owner, work) : this.#runNow(owner, work))
      // Also turns what it throws into a rejection.
      resolve(new Promise((settle) => settle(run())))
    })
    return await promise
  }

  #runNow<T>(owner: SliceOwner, work: () => T): T {
    const { nowMs, cpuMs } = this.#timers
    const startedAtMs = nowMs()
    const cpuMsBefore = cpuMs()
    try {
      return work()
    } finally {
      this.#charge(owner, { startedAtMs, cpuMs: cpuMs() - cpuMsBefore })
      this.#shortMs += nowMs() - startedAtMs
      if (!this.#isDrainScheduled) setImmediate(this.#drainShorts)
      this.#isDrainScheduled = true
    }
  }

  /** A new turn has its own time. */
  readonly #drainShorts = (): void => {
    this.#shortMs = 0
    this.#isDrainScheduled = this.#shorts.length > 0
    while (this.#shorts.length > 0 && this.#shortMs < SHORT_MS_MAX) this.#shorts.shift()?.()
    if (this.#isDrainScheduled) setImmediate(this.#drainShorts)
  }

  /** In the next turn of the event loop, or when the first pause ends. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#cancelTimer?.()
    this.#cancelTimer = null
    const ready = this.#waiting.keys().find((owner) => this.#pauseMs(owner) === 0)
    if (ready === undefined) {
      const pauseMs = Math.min(...this.#waiting.keys().map((owner) => this.#pauseMs(owner)))
      if (pauseMs === Number.POSITIVE_INFINITY) return
      this.#cancelTimer = this.#timers.after(pauseMs, () => this.#schedule())
      return
    }
    this.#isScheduled = true
    // Both run in the same turn, and what the slice's owner does runs between them.
    setImmediate(() => this.#resume(ready))
    setImmediate(() => this.#settle())
  }

  /** Short work that ran meanwhile may have used the owner's share again. It doesn't wait for that. */
  #resume(owner: SliceOwner): void {
    const ofOwner = this.#waiting.get(owner) ?? []
    const resume = ofOwner.shift()
    // The owner goes to the end of the line.
    this.#waiting.delete(owner)
    if (ofOwner.length > 0) this.#waiting.set(owner, ofOwner)
    const { nowMs, cpuMs } = this.#timers
    this.#running = { owner, startedAtMs: nowMs(), cpuMsBefore: cpuMs() }
    resume?.()
  }

  #settle(): void {
    if (this.#running) {
      const { owner, startedAtMs, cpuMsBefore } = this.#running
      const cpuMs = this.#timers.cpuMs() - cpuMsBefore
      if (owner !== SERVICE) this.#charge(owner, { startedAtMs, cpuMs })
    }
    this.#running = null
    this.#isScheduled = false
    this.#schedule()
  }

  #charge(owner: SliceOwner, slice: { startedAtMs: number; cpuMs: number }): void {
    const nowMs = this.#timers.nowMs()
    const usage = this.#usage.get(owner) ?? new Usage(OWNER_PAUSE_RATIO)
    this.#usage.delete(owner)
    this.#usage.set(owner, usage)
    const used = { ...slice, isContended: this.isContended(owner) }
    usage.add(used, nowMs)
    this.#sharedUsage.add(used, nowMs)
    for (const [other, { updatedAtMs }] of this.#usage) {
      if (nowMs - updatedAtMs < FORGET_MS) break
      this.#usage.delete(other)
    }
  }

  /** Whether an owner other than this one is active. */
  isContended(owner: SliceOwner): boolean {
    const [newest, other] = this.#active
    const { atMs } = newest.owner === owner ? other : newest
    return this.#timers.nowMs() - atMs < ACTIVE_MS
  }

  /** Zero if the owner can run now. */
  #pauseMs(owner: SliceOwner): number {
    if (owner === SERVICE || !this.isContended(owner)) return 0
    const ownerAtMs = this.#usage.get(owner)?.readyAtMs ?? 0
    const pauseMs = Math.max(ownerAtMs, this.#sharedUsage.readyAtMs) - this.#timers.nowMs()
    return pauseMs < PAUSE_MS_MIN ? 0 : pauseMs
  }
}

/** When an owner's last request was seen. */
type Activity = { owner: SliceOwner; atMs: number }

/** How much of the thread slices used lately, and when the next one can start. */
class Usage {
  readonly #pauseRatio: number
  #usedMs = 0
  updatedAtMs = 0
  readyAtMs = 0

  constructor(pauseRatio: number) {
    this.#pauseRatio = pauseRatio
  }

  /** Usage is CPU time. Pauses follow wall time, because that is what a slice costs other requests. */
  add(
    {
      startedAtMs,
      cpuMs,
      isContended,
    }: { startedAtMs: number; cpuMs: number; isContended: boolean },
    nowMs: number,
  ): void {
    const faded = Math.exp((this.updatedAtMs - nowMs) / LATELY_MS)
    this.#usedMs = this.#usedMs * faded + cpuMs
    this.updatedAtMs = nowMs
    if (this.#usedMs <= FREE_MS || !isContended) return
    const costMs = (nowMs - startedAtMs) * (1 + this.#pauseRatio)
    this.readyAtMs = Math.max(this.readyAtMs, startedAtMs) + costMs
  }
}
