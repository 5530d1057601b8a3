const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS
const YEAR_MS = 365 * DAY_MS

/** Only whole numbers, because counts have no fractions. */
const COUNT_STEPS = Array.from({ length: 12 }, (_, power) =>
  [1, 2, 5].map((factor) => factor * 10 ** power),
).flat()

const TIME_STEPS_MS = [
  // 1 to 500 ms.
  ...COUNT_STEPS.slice(0, 9),
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE_MS),
  ...[1, 2, 3, 4, 6, 12].map((hours) => hours * HOUR_MS),
  ...[1, 2, 3, 4, 5, 7, 14, 30, 60, 90, 180].map((days) => days * DAY_MS),
]

/**
 * The counts that get a grid line, starting at 0, as dense as `spacePx` allows. The last one is the top
 * of the axis, so that no bar exceeds it.
 */
export function countMarks(most: number, heightPx: number, spacePx: number): number[] {
  const step = COUNT_STEPS.find((count) => Math.ceil(most / count) * spacePx <= heightPx) ?? most
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step)
}

type TimeMarks = { stepMs: number; marks: number[] }

/**
 * The times that get a label: full hours or days, also across a clock change. `offsetOf` returns how far
 * the clocks are ahead of UTC.
 */
export function timeMarks(
  { fromMs, toMs }: { fromMs: number; toMs: number },
  widthPx: number,
  { spacePx, offsetOf }: { spacePx: number; offsetOf: (ms: number) => number },
): TimeMarks {
  const leastMs = ((toMs - fromMs) / Math.max(1, widthPx)) * spacePx
  const stepMs = TIME_STEPS_MS.find((ms) => ms >= leastMs) ?? Math.ceil(leastMs / YEAR_MS) * YEAR_MS
  const marks: number[] = []
  let wallMs = Math.ceil((fromMs + offsetOf(fromMs)) / stepMs) * stepMs
  for (; marks.length <= widthPx / spacePx; wallMs += stepMs) {
    const ms = wallMs - offsetOf(wallMs - offsetOf(wallMs))
    if (ms > toMs) break
    if (ms >= fromMs && ms !== marks.at(-1)) marks.push(ms)
  }
  return { stepMs, marks }
}
