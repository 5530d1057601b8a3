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

/** The smallest step with at most 120 bars. Very long ranges use multiples of 364 days. */
export function chooseStepS({ fromMs, toMs }: { fromMs: number; toMs: number }): number {
  const spanS = (toMs - fromMs) / 1_000
  const fitting = STEPS_S.find((stepS) => Math.ceil(spanS / stepS) <= BARS_MAX)
  if (fitting !== undefined) return fitting
  const years = 364 * DAY_S
  return Math.ceil(spanS / BARS_MAX / years) * years
}

/**
 * The start of the bar that contains this time. Bars are aligned to UTC, and bars of whole weeks start on
 * Mondays.
 */
export function barStartMs(atMs: number, stepS: number): number {
  const originMs = originOf(stepS)
  const stepMs = stepS * 1_000
  return originMs + Math.floor((atMs - originMs) / stepMs) * stepMs
}

const FIRST_MONDAY_MS = Date.UTC(1970, 0, 5)

export function originOf(stepS: number): number {
  return stepS % (7 * DAY_S) === 0 ? FIRST_MONDAY_MS : 0
}

/** The starts of a range's bars. The first and last bar can extend beyond the range. */
export function listBars(
  { fromMs, toMs }: { fromMs: number; toMs: number },
  stepS: number,
): number[] {
  const bars: number[] = []
  for (let atMs = barStartMs(fromMs, stepS); atMs < toMs; atMs += stepS * 1_000) bars.push(atMs)
  return bars
}
