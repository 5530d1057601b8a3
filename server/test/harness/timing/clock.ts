import type { Clock } from '../../../src/platform/time/clock.ts'

/** A clock that only the test moves. */
export function manualClock(startMs: number = Date.now()): {
  clock: Clock
  advance: (ms: number) => void
} {
  let nowMs = startMs
  return {
    clock: () => nowMs,
    advance: (ms) => {
      nowMs += ms
    },
  }
}
