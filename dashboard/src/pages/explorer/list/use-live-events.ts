import { useCallback, useEffect, useRef, useState } from 'react'
import { followEvents, type LiveState } from '../event-source.ts'
import { type ExplorerEvent, isBefore } from '../explorer-event.ts'
import type { Filters } from '../../../query/filters.ts'
import type { Sort } from '../../../query/received.ts'

/** A busy service sends hundreds of events per second. The page renders four times per second. */
const RENDER_EVERY_MS = 250
/** Beyond this the list is reloaded, which costs less than keeping all of them. */
const FRESH_EVENTS_MAX = 2_000

type Arrived = { shown: readonly ExplorerEvent[]; waiting: readonly ExplorerEvent[] }
const NONE: Arrived = { shown: [], waiting: [] }

/**
 * New events while `isLive` is set. Events that arrive while the member is scrolled down wait until
 * `showNew` is called, so that no row moves.
 */
export function useLiveEvents({
  filters,
  fromMs,
  sort,
  isLive,
  askedAt,
  refresh,
  isAtTop,
}: {
  filters: Filters
  fromMs: number
  sort: Sort
  isLive: boolean
  askedAt: number
  refresh: () => void
  isAtTop: () => boolean
}) {
  const [arrived, setArrived] = useState(NONE)
  const [state, setState] = useState<LiveState>('connecting')
  const collected = useRef<ExplorerEvent[]>([])
  // A new query or a reload already contains everything that arrived before it.
  useEffect(() => setArrived(NONE), [filters, sort, askedAt, isLive])
  useEffect(() => {
    if (!isLive) return undefined
    collected.current = []
    setState('connecting')
    const stop = followEvents(filters, {
      onEvent: (event) => {
        collected.current.push(event)
        if (collected.current.length <= FRESH_EVENTS_MAX) return
        // Timers rarely run in a background tab, so the events pile up.
        collected.current = []
        refresh()
      },
      onGap: refresh,
      onState: setState,
    })
    return stop
  }, [filters, isLive, refresh])
  useEffect(() => {
    if (!isLive) return undefined
    const timer = setInterval(() => {
      const events = collected.current.filter(({ timestamp }) => Date.parse(timestamp) >= fromMs)
      collected.current = []
      if (events.length > 0)
        setArrived((before) => take(before, events, { isShown: isAtTop(), sort }))
    }, RENDER_EVERY_MS)
    return () => clearInterval(timer)
  }, [isLive, fromMs, sort, isAtTop])
  const isOver = arrived.shown.length > FRESH_EVENTS_MAX
  useEffect(() => {
    if (isOver) refresh()
  }, [isOver, refresh])
  const showNew = useCallback(
    () => setArrived((before) => take(before, [], { isShown: true, sort })),
    [sort],
  )
  return { ...arrived, showNew, state }
}

function take(
  { shown, waiting }: Arrived,
  events: readonly ExplorerEvent[],
  { isShown, sort }: { isShown: boolean; sort: Sort },
): Arrived {
  const waitingNow = [...events.toReversed(), ...waiting].slice(0, FRESH_EVENTS_MAX + 1)
  if (!isShown) return { shown, waiting: waitingNow }
  if (waitingNow.length === 0) return { shown, waiting: [] }
  const sorted = [...waitingNow, ...shown].sort((a, b) => (isBefore(a, b, sort) ? -1 : 1))
  return { shown: sorted, waiting: [] }
}
