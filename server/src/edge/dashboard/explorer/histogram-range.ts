import { ApiError } from '../../../errors.ts'
import type { Bars } from '../../../outlet/explorer/histogram/histogram-step.ts'
import type { TimeRange } from '../../../outlet/explorer/histogram/rollup-ranges.ts'
import { DAY_MS } from '../../../platform/time/time-units.ts'
import { type OffsetOf, readTimeZone } from '../../../platform/time/time-zone.ts'
import { formatUtcMs, isUtcMs } from '../../../platform/time/utc-time.ts'
import { invalidParameterError } from '../../event/event-filter-input.ts'

export function readOffsets(timeZone = 'UTC'): OffsetOf {
  const offsetOf = readTimeZone(timeZone)
  if (!offsetOf) throw invalidParameterError('timeZone', 'must be an IANA time zone')
  return offsetOf
}

/** By default, the range ends now and is one day long. */
export function readRange(
  { fromMs, toMs }: { fromMs: number | null; toMs: number | null },
  nowMs: number,
): TimeRange {
  const lastMs = fromMs === null ? nowMs : Math.max(nowMs, fromMs + DAY_MS)
  const endMs = toMs ?? lastMs
  const beginMs = fromMs ?? endMs - DAY_MS
  if (isUtcMs(beginMs) && isUtcMs(endMs)) return { fromMs: beginMs, toMs: endMs }
  throw new ApiError('invalid_request', {
    message: 'The range extends beyond the years 0000 to 9999. Choose a smaller one.',
  })
}

/** The outer bars can extend beyond the range, and so beyond the years that can be formatted. */
export function formatBars({ starts, endMs }: Bars, { fromMs, toMs }: TimeRange) {
  return {
    bars: starts.map((startMs) => formatUtcMs(isUtcMs(startMs) ? startMs : fromMs)),
    lastBarEnd: formatUtcMs(isUtcMs(endMs) ? endMs : toMs),
  }
}
