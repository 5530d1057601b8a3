import { addDays, dayAt, dayStartMs, weekStart } from '../../../parts/time/calendar.ts'
import { formatCount } from '../../../parts/text/format.ts'
import { isPeriod, RANGES, type TimeWindow } from '../../../query/time-window.ts'

type PreviousWindow = TimeWindow & { name: string }

/**
 * The period to compare with: the one just before, of the same length. A day or week that isn't over is
 * compared with the same part of the one before. Null for all time.
 */
export function previousWindow({ fromMs, toMs, range }: TimeWindow): PreviousWindow | null {
  const since = (startMs: number, name: string): PreviousWindow => ({
    fromMs: startMs,
    toMs: startMs + (toMs - fromMs),
    range: null,
    name,
  })
  if (range === null) return since(fromMs - (toMs - fromMs), 'the period before')
  if (!isPeriod(range)) {
    const name = RANGES[range].label.replace('Last', 'the previous')
    return since(fromMs - (toMs - fromMs), name)
  }
  const first = dayAt(fromMs)
  const dayBefore = dayStartMs(addDays(first, -1))
  switch (range) {
    case 'today':
      return since(dayBefore, 'the same time yesterday')
    case 'yesterday':
      return { fromMs: dayBefore, toMs: fromMs, range: null, name: 'the day before' }
    case 'thisWeek':
      return since(dayStartMs(addDays(weekStart(first), -7)), 'the same time last week')
    case 'previousMonth': {
      const startMs = dayStartMs({ ...first, month: first.month - 1 })
      return { fromMs: startMs, toMs: fromMs, range: null, name: 'the month before' }
    }
    case 'allTime':
      return null
    default:
      return range satisfies never
  }
}

/** For example "+12%". A change from none has no percentage. */
export function changeText(total: number, before: number): string {
  if (total === before) return '±0%'
  if (before === 0) return `+${formatCount(total)}`
  const percent = ((total - before) / before) * 100
  const sign = percent < 0 ? '−' : '+'
  const size = Math.abs(percent)
  if (size < 0.5) return `${sign}<1%`
  return `${sign}${formatCount(Math.round(size))}%`
}
