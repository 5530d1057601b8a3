import { lazy, memo, Suspense, useCallback, useMemo } from 'react'
import { whenConnected } from '../../../api/when-connected.ts'
import { type CountBy, othersText, readCountBy } from '../count-by.ts'
import { type Histogram as Counts, useHistogram } from '../event-queries.ts'
import { Histogram } from './Histogram.tsx'
import type { HotTime } from '../explorer-event.ts'
import { type TimeWindow, zoomOutPatch } from '../../../query/time-window.ts'
import { useTimeZone } from '../../../parts/time/time-zone.ts'
import type { Explorer } from '../use-explorer.ts'

// Loaded after the counts, which it compares.
const Comparison = lazy(
  whenConnected(async () => ({ default: (await import('./Comparison.tsx')).Comparison })),
)

export const HistogramSection = memo(function HistogramSection({
  explorer,
  shown,
  reloads,
  listedCount,
  isLive,
  isFailed,
  hotTime,
  metadataPaths,
  projectName,
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
  hotTime: HotTime | null
  metadataPaths: readonly string[]
  projectName: (id: string) => string
}) {
  const { search, filters, askedAt, change } = explorer
  const by = readCountBy(search.by) ?? 'category'
  const query = { filters, timeWindow: shown, askedAt: askedAt + reloads }
  const timeZone = useTimeZone()
  const { data, error, isPlaceholderData } = useHistogram(query, by)
  const counts = useMemo(
    () =>
      data && {
        ...labeled(data, by, projectName),
        ...(listedCount !== null && { total: listedCount }),
      },
    [data, by, projectName, listedCount],
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
      metadataPaths={metadataPaths}
      change={change}
      zoomOut={zoomOut}
      comparison={
        counts &&
        !isLive &&
        !isPlaceholderData && (
          <Suspense>
            <Comparison query={query} total={counts.total} hotTime={hotTime} />
          </Suspense>
        )
      }
    />
  )
})

/** Shows projects by their names, and says what the last series contains. */
function labeled(counts: Counts, by: CountBy, projectName: (id: string) => string): Counts {
  const labelOf = (value: string | null) => {
    if (value === null) return counts.isGrouped ? othersText(by) : 'All events'
    return by === 'projectId' ? projectName(value) : value
  }
  return { ...counts, series: counts.series.map((one) => ({ ...one, label: labelOf(one.value) })) }
}
