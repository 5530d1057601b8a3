import { memo, useCallback, useMemo } from 'react'
import { useHistogram } from '../event-queries.ts'
import { Histogram } from './Histogram.tsx'
import { type TimeWindow, zoomOutPatch } from '../../../query/time-window.ts'
import { useTimeZone } from '../../../parts/time-zone.ts'
import type { Explorer } from '../use-explorer.ts'

export const HistogramSection = memo(function HistogramSection({
  explorer,
  shown,
  reloads,
  listedCount,
  isLive,
  isFailed,
}: {
  explorer: Explorer
  shown: TimeWindow
  reloads: number
  /**
   * The number of events if the list has all of them, which a live tail adds to between two reloads of the
   * histogram. Null otherwise.
   */
  listedCount: number | null
  isLive: boolean
  /** The list failed to load. */
  isFailed: boolean
}) {
  const { search, filters, askedAt, change } = explorer
  const by = search.by === 'action' ? 'action' : 'category'
  const query = { filters, timeWindow: shown, askedAt: askedAt + reloads }
  const timeZone = useTimeZone()
  const { data, error, isPlaceholderData } = useHistogram(query, by)
  const counts = useMemo(
    () => (data && listedCount !== null ? { ...data, total: listedCount } : data),
    [data, listedCount],
  )
  const zoomOut = useCallback(() => change(zoomOutPatch(search, Date.now())), [change, search])
  return (
    <Histogram
      counts={counts}
      error={error}
      isErrorShownElsewhere={isFailed}
      isBusy={isPlaceholderData && !isLive}
      timeWindow={shown}
      timeZone={timeZone}
      by={by}
      change={change}
      zoomOut={zoomOut}
    />
  )
})
