import { memo, useCallback, useEffect, useMemo, useState } from 'react'
import { useHistogram } from '../event-queries.ts'
import { Histogram } from './Histogram.tsx'
import { windowOf, zoomOutPatch } from '../../../query/time-window.ts'
import type { Explorer } from '../use-explorer.ts'

/** During a live tail the histogram is reloaded this often. */
const RELOAD_EVERY_MS = 5_000

export const HistogramSection = memo(function HistogramSection({
  explorer,
  isLive,
  isFailed,
}: {
  explorer: Explorer
  isLive: boolean
  /** The list failed to load. */
  isFailed: boolean
}) {
  const { search, filters, timeWindow, askedAt, change } = explorer
  const reloads = useReloads(isLive)
  const { range } = search
  const shown = useMemo(
    () => (reloads > 0 ? windowOf({ ...(range && { range }) }, Date.now()) : timeWindow),
    [reloads, range, timeWindow],
  )
  const by = search.by === 'action' ? 'action' : 'category'
  const query = { filters, timeWindow: shown, askedAt: askedAt + reloads }
  const { data, error, isPlaceholderData } = useHistogram(query, by)
  const zoomOut = useCallback(() => change(zoomOutPatch(search, Date.now())), [change, search])
  return (
    <Histogram
      counts={data}
      error={error}
      isErrorShownElsewhere={isFailed}
      isBusy={isPlaceholderData && !isLive}
      timeWindow={shown}
      by={by}
      change={change}
      zoomOut={zoomOut}
    />
  )
})

/** A counter that increases while `isOn` is set, to trigger a reload. */
function useReloads(isOn: boolean): number {
  const [reloads, setReloads] = useState(0)
  useEffect(() => {
    if (!isOn) return undefined
    const timer = setInterval(() => setReloads((count) => count + 1), RELOAD_EVERY_MS)
    return () => clearInterval(timer)
  }, [isOn])
  return isOn ? reloads : 0
}
