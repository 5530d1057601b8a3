import { useQuery } from '@tanstack/react-query'
import { countEvents, type EventsQuery, timesOf } from '../event-queries.ts'
import { type HotTime, reachesArchive } from '../explorer-event.ts'
import { hasReceived } from '../../../query/received.ts'
import { formatLocal } from '../../../parts/time/time.ts'
import classes from './Histogram.module.css'
import { changeText, previousWindow } from './comparison.ts'

/**
 * Compares the number of events with the period before, or says that archived events aren't counted. Shows nothing if
 * only the period before is no longer hot.
 */
export function Comparison({
  query: { filters, timeWindow, askedAt },
  total,
  hotTime,
}: {
  query: EventsQuery
  total: number
  hotTime: HotTime | null
}) {
  const previous = previousWindow(timeWindow)
  // Events that are archived aren't counted, so the period before would look quieter than it was.
  const isHot = previous !== null && hotTime !== null && previous.fromMs >= hotTime.sinceMs
  // Events of the previous period usually arrived at other times, so this filter would distort their count.
  const isComparable = isHot && !hasReceived(filters)
  const { data } = useQuery({
    queryKey: ['events', 'previous', filters, previous && timesOf(previous), askedAt],
    queryFn: async () => (previous === null ? null : await countEvents(filters, previous)),
    enabled: isComparable,
    gcTime: 60_000,
  })
  if (hotTime?.hasArchived && reachesArchive(hotTime, timeWindow, filters)) {
    return <span className={`${classes.comparison} soft`}>Archived events aren’t counted</span>
  }
  if (previous === null || !isComparable || data === undefined || data === null) return null
  const { fromMs, toMs, name } = previous
  return (
    <span
      className={`${classes.comparison} soft numeric`}
      title={`${formatLocal(fromMs, 'clock')} – ${formatLocal(toMs, 'clock')}`}
    >
      {changeText(total, data)} vs. {name}
    </span>
  )
}
