import { useEffect, useMemo, useState } from 'react'
import { type TimeWindow, windowOf } from '../../query/time-window.ts'

/** During a live tail the window moves, and the histogram is reloaded, this often. */
const RELOAD_EVERY_MS = 5_000

/**
 * The window that the list and the histogram show. During a live tail, a range such as "Last 15 minutes"
 * moves with the clock. `reloads` increases with every move.
 */
export function useShownWindow(timeWindow: TimeWindow, isLive: boolean) {
  const reloads = useReloads(isLive)
  const shown = useMemo(() => {
    const { range } = timeWindow
    return reloads > 0 && range !== null ? windowOf({ range }, Date.now()) : timeWindow
  }, [reloads, timeWindow])
  return { shown, reloads }
}

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
