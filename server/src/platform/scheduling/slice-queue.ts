import { SERVICE, type SliceOwner, ThreadShare } from './thread-share.ts'

export type SliceTimers = {
  nowMs: () => number
  /** CPU time of this thread. Unlike the wall clock, it stops while other processes run. */
  cpuMs: () => number
  /** Returns a function that cancels the call. */
  after: (delayMs: number, run: () => void) => () => void
}

/** The limit for all short work in one turn of the event loop. */
const SHORT_MS_MAX = 10
/** An owner that used less than this lately, a fortieth of the thread, never pauses for others. */
const LIGHT_MS = 50
/** An owner that sent nothing for this long counts as inactive. */
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
 * A request that isn't sliced needs several turns. If each of them contained a slice, one owner could make
 * all requests ten times slower. So an owner with high recent usage pauses after each slice, and so do all
 * owners together, unless they used little or no other owner is active. The service's own work isn't throttled.
 *
 * Short work, such as parsing a small body, doesn't wait for a slice, but all of it together has only a few
 * milliseconds per turn. It is charged to its owner.
 */
export class SliceQueue {
  readonly #timers: SliceTimers
  readonly #waiting = new Map<SliceOwner, (() => void)[]>()
  readonly share: ThreadShare
  readonly #active: [newest: Activity, other: Activity] = [
    { owner: SERVICE, atMs: Number.NEGATIVE_INFINITY },
    { owner: SERVICE, atMs: Number.NEGATIVE_INFINITY },
  ]
  #running: { owner: SliceOwner; startedAtMs: number; cpuMsBefore: number } | null = null
  /** Short work for which its turn had no time left. */
  readonly #shorts: (() => void)[] = []
  #shortMs = 0
  #isDrainScheduled = false
  #isScheduled = false
  #cancelTimer: (() => void) | null = null

  constructor(timers: SliceTimers = SYSTEM_TIMERS) {
    this.#timers = timers
    const isContended = (owner: SliceOwner) => this.isContended(owner)
    this.share = new ThreadShare({ nowMs: timers.nowMs, isContended, lightMs: LIGHT_MS })
  }

  /** Call this for every request, so that other owners leave time for it. */
  noteActivity(owner: SliceOwner): void {
    const [newest, other] = this.#active
    if (owner !== newest.owner) {
      other.owner = newest.owner
      other.atMs = newest.atMs
      newest.owner = owner
    }
    newest.atMs = this.#timers.nowMs()
  }

  /**
   * Resolves when the owner can run a slice. The slice ends with the first turn of the event loop. Rejects with
   * the signal's reason if it is aborted first.
   */
  next(owner: SliceOwner, signal?: AbortSignal): Promise<void> {
    if (signal === undefined) return new Promise((resolve) => this.#enqueue(owner, resolve))
    signal.throwIfAborted()
    return new Promise((resolve, reject) => {
      const resume = () => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = () => {
        this.#remove(owner, resume)
        reject(signal.reason)
      }
      signal.addEventListener('abort', leave, { once: true })
      this.#enqueue(owner, resume)
    })
  }

  #enqueue(owner: SliceOwner, resume: () => void): void {
    const ownerQueue = this.#waiting.get(owner)
    if (ownerQueue) {
      ownerQueue.push(resume)
    } else {
      this.#waiting.set(owner, [resume])
      this.#schedule()
    }
  }

  #remove(owner: SliceOwner, resume: () => void): void {
    const ownerQueue = this.#waiting.get(owner)?.filter((other) => other !== resume) ?? []
    if (ownerQueue.length > 0) this.#waiting.set(owner, ownerQueue)
    else this.#waiting.delete(owner)
    this.#schedule()
  }

  /**
   * Runs work of a few milliseconds: immediately if this turn has time left, otherwise in a later one. If
   * the owner has recently used more than its share, the work waits for a slice.
   */
  runShort<T>(owner: SliceOwner, work: () => T): T | Promise<Awaited<T>> {
    if (this.share.pauseMs(owner) > 0) return this.#runInSlice(owner, work)
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
      const isPaused = this.share.pauseMs(owner) > 0
      const run = () => (isPaused ? this.#runInSlice(owner, work) : this.#runNow(owner, work))
      // Also turns an exception into a rejection.
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
      const wallMs = nowMs() - startedAtMs
      this.share.charge(owner, { cpuMs: cpuMs() - cpuMsBefore, wallMs })
      this.#shortMs += wallMs
      if (!this.#isDrainScheduled) setImmediate(this.#drainShorts)
      this.#isDrainScheduled = true
    }
  }

  /** Each turn has its own time budget. */
  readonly #drainShorts = (): void => {
    this.#shortMs = 0
    this.#isDrainScheduled = this.#shorts.length > 0
    while (this.#shorts.length > 0 && this.#shortMs < SHORT_MS_MAX) this.#shorts.shift()?.()
    if (this.#isDrainScheduled) setImmediate(this.#drainShorts)
  }

  /** Schedules the next slice for the next turn of the event loop, or for the end of the first pause. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#cancelTimer?.()
    this.#cancelTimer = null
    const ready = this.#waiting.keys().find((owner) => this.share.pauseMs(owner) === 0)
    if (ready === undefined) {
      const pauseMs = Math.min(...this.#waiting.keys().map((owner) => this.share.pauseMs(owner)))
      if (pauseMs === Number.POSITIVE_INFINITY) return
      // A pause ends early once no other owner is active.
      this.#cancelTimer = this.#timers.after(Math.min(pauseMs, ACTIVE_MS), () => this.#schedule())
      return
    }
    this.#isScheduled = true
    // Both run in the same turn, and the work of the slice's owner runs between them.
    setImmediate(() => this.#resume(ready))
    setImmediate(() => this.#settle())
  }

  /**
   * Short work that ran meanwhile may have used up the owner's share again. The slice doesn't wait for that.
   */
  #resume(owner: SliceOwner): void {
    const ownerQueue = this.#waiting.get(owner) ?? []
    const resume = ownerQueue.shift()
    // The owner moves to the end of the queue.
    this.#waiting.delete(owner)
    if (ownerQueue.length > 0) this.#waiting.set(owner, ownerQueue)
    const { nowMs, cpuMs } = this.#timers
    this.#running = { owner, startedAtMs: nowMs(), cpuMsBefore: cpuMs() }
    resume?.()
  }

  #settle(): void {
    if (this.#running) {
      const { owner, startedAtMs, cpuMsBefore } = this.#running
      const { nowMs, cpuMs } = this.#timers
      this.share.charge(owner, { cpuMs: cpuMs() - cpuMsBefore, wallMs: nowMs() - startedAtMs })
    }
    this.#running = null
    this.#isScheduled = false
    this.#schedule()
  }

  /** Whether an owner other than this one is active. */
  isContended(owner: SliceOwner): boolean {
    const [newest, other] = this.#active
    const { atMs } = newest.owner === owner ? other : newest
    return this.#timers.nowMs() - atMs < ACTIVE_MS
  }
}

/** When an owner's last request was seen. */
type Activity = { owner: SliceOwner; atMs: number }
