import { ROLLUP_GRAINS_S } from '../../../ledger/rollup/rollup-store.ts'
import type { OffsetOf } from '../../../platform/time/time-zone.ts'
import type { TimeRange } from './rollup-ranges.ts'

const MINUTE_S = 60
const HOUR_S = 3_600
const DAY_S = 86_400

/** Bar lengths that people are used to. */
const STEPS_S = [
  1,
  2,
  5,
  10,
  15,
  30,
  MINUTE_S,
  2 * MINUTE_S,
  5 * MINUTE_S,
  10 * MINUTE_S,
  15 * MINUTE_S,
  30 * MINUTE_S,
  HOUR_S,
  2 * HOUR_S,
  3 * HOUR_S,
  6 * HOUR_S,
  12 * HOUR_S,
  DAY_S,
  2 * DAY_S,
  7 * DAY_S,
  14 * DAY_S,
  28 * DAY_S,
  91 * DAY_S,
  364 * DAY_S,
] as const

const BARS_MAX = 120
const LARGE_BUCKET_S = ROLLUP_GRAINS_S[1]

/**
 * The smallest step with at most 120 bars. Very long ranges use multiples of 364 days.
 *
 * In most time zones, bars of several hours don't start with one of the roll-up's large buckets. Counting
 * 120 of them over 30 days would take 17 times as long as in UTC, so there are at most 60.
 */
export function chooseStepS({ fromMs, toMs }: TimeRange, offsetOf: OffsetOf): number {
  const spanS = (toMs - fromMs) / 1_000
  const isSlow = offsetOf(toMs) % (LARGE_BUCKET_S * 1_000) !== 0
  const barsMax = (stepS: number) =>
    isSlow && stepS >= LARGE_BUCKET_S && stepS < DAY_S ? BARS_MAX / 2 : BARS_MAX
  const fitting = STEPS_S.find((stepS) => Math.ceil(spanS / stepS) <= barsMax(stepS))
  if (fitting !== undefined) return fitting
  const years = 364 * DAY_S
  return Math.ceil(spanS / BARS_MAX / years) * years
}

const FIRST_MONDAY_MS = Date.UTC(1970, 0, 5)

/** The starts of the bars of a range, and the end of the last one. Both can be beyond the range. */
export type Bars = { starts: number[]; endMs: number }

/**
 * Bars start at a time that is a multiple of the step on the clocks of a time zone, so bars of days start
 * at midnight. Bars of whole weeks start on Mondays. A bar during which the clocks change can be shorter or
 * longer than the step.
 */
export function listBars({ fromMs, toMs }: TimeRange, stepS: number, offsetOf: OffsetOf): Bars {
  const starts: number[] = []
  let atMs = barBefore(fromMs, stepS, offsetOf)
  for (; atMs < toMs; atMs = barAfter(atMs, stepS, offsetOf)) {
    // After a clock change, the second bar can be the first one that overlaps the range.
    if (atMs <= fromMs) starts.length = 0
    starts.push(atMs)
  }
  return { starts, endMs: atMs }
}

/** The start of a bar that contains this time, or of an earlier bar. */
function barBefore(atMs: number, stepS: number, offsetOf: OffsetOf): number {
  const wallMs = floorWall(atMs + offsetOf(atMs), stepS)
  const startMs = wallMs - offsetOf(atMs)
  const exactMs = wallMs - offsetOf(startMs)
  return exactMs <= atMs && exactMs + offsetOf(exactMs) === wallMs ? exactMs : startMs
}

function barAfter(atMs: number, stepS: number, offsetOf: OffsetOf): number {
  const offsetMs = offsetOf(atMs)
  const nextMs = floorWall(atMs + offsetMs, stepS) + stepS * 1_000 - offsetMs
  const nextOffsetMs = offsetOf(nextMs)
  // Also after a change by a multiple of the step, which moves no bar.
  if (isWallStart(nextMs + nextOffsetMs, stepS)) return nextMs
  const movedMs = nextMs + offsetMs - nextOffsetMs
  const isReached = movedMs > atMs && isWallStart(movedMs + offsetOf(movedMs), stepS)
  // If the clocks skip that time, such as midnight, the bar starts when they go on.
  return isReached ? movedMs : nextMs
}

function isWallStart(wallMs: number, stepS: number): boolean {
  return floorWall(wallMs, stepS) === wallMs
}

function floorWall(wallMs: number, stepS: number): number {
  const originMs = stepS % (7 * DAY_S) === 0 ? FIRST_MONDAY_MS : 0
  const stepMs = stepS * 1_000
  return originMs + Math.floor((wallMs - originMs) / stepMs) * stepMs
}
