import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 20
const TURN_MS = 5
/** Only ends a test that fails. A slow machine may need long for what takes milliseconds elsewhere. */
const TIMEOUT_MS = 60_000
const TRIES_MAX = 4
/** Many time slices of the scheduler. */
const SPIN_US = 300_000

/** Retries `check` while it throws, and throws its last error when the time is up. */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<T> {
  const giveUpAtMs = performance.now() + timeoutMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() >= giveUpAtMs) throw error
    }
    await delay(POLL_MS)
  }
}

/**
 * Like `eventually`, for a guarantee in milliseconds. Counts the ticks of a timer instead of the time: a
 * machine that is too busy to keep the guarantee has fewer ticks.
 */
export async function eventuallyWithin<T>(msMax: number, check: () => T | Promise<T>): Promise<T> {
  for (let turns = 1; ; turns += 1) {
    try {
      return await check()
    } catch (error) {
      if (turns * POLL_MS > msMax) throw error
    }
    await delay(POLL_MS)
  }
}

/** Milliseconds in turns of a timer, for promises about durations. */
export class TurnClock implements Disposable {
  #ms = 0
  readonly #timer = setInterval(() => (this.#ms += TURN_MS), TURN_MS)

  get ms(): number {
    return this.#ms
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}

/** The result of work that takes less than this by a `TurnClock`. */
export async function within<T>(msMax: number, work: PromiseLike<T>): Promise<T> {
  using clock = new TurnClock()
  const result = await work
  assert(clock.ms < msMax, `it took more than ${clock.ms} ms`)
  return result
}

/**
 * Repeats what other processes do until it takes less than this. `measure` returns how long it took. A
 * busy machine can delay them without delaying the timers of this process, so a longer time is divided by
 * how much longer than its CPU time some work takes now.
 */
export async function oneOfManyWithin(
  msMax: number,
  measure: () => Promise<number>,
): Promise<void> {
  const triesMs: number[] = []
  while (!triesMs.some((ms) => ms < msMax)) {
    assert(triesMs.length < TRIES_MAX, `it took ${triesMs.map(Math.round).join(', ')} ms`)
    const ms = await measure()
    triesMs.push(withoutSlowdown(ms, msMax))
  }
}

/** A time that other processes took, as it might have been on a machine that is not busy if it is too long. */
export function withoutSlowdown(ms: number, msMax: number): number {
  return ms < msMax ? ms : ms / measureSlowdown()
}

function measureSlowdown(): number {
  const startedAtMs = performance.now()
  const before = process.threadCpuUsage()
  for (;;) {
    const { user, system } = process.threadCpuUsage(before)
    if (user + system > SPIN_US) return ((performance.now() - startedAtMs) * 1_000) / SPIN_US
  }
}
