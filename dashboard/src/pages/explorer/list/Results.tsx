import { Button, Skeleton } from '@mantine/core'
import { lazy, Suspense, useCallback, useEffect, useState } from 'react'
import { whenConnected } from '../../../api/when-connected.ts'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { EventList } from './EventList.tsx'
import classes from './EventList.module.css'
import { LOADED_EVENTS_MAX, type useEventPages } from '../event-queries.ts'
import type { ColumnName, Names } from './columns.ts'
import { type ExplorerEvent, type HotTime, reachesArchive } from '../explorer-event.ts'
import { type Chip, type Filters, mayExclude } from '../../../query/filters.ts'
import type { Sort } from '../../../query/received.ts'
import { exactPatch, isoOf, type TimeWindow } from '../../../query/time-window.ts'
import type { Change } from '../use-explorer.ts'
import type { useLiveEvents } from './use-live-events.ts'

const SKELETON_ROWS = 12

// Loaded when the member searches the archive.
const ArchiveSearch = lazy(
  whenConnected(async () => ({ default: (await import('./ArchiveSearch.tsx')).ArchiveSearch })),
)
// Loaded on demand, because most lists aren't empty.
const NoResults = lazy(
  whenConnected(async () => ({ default: (await import('./NoResults.tsx')).NoResults })),
)

type ResultsProps = {
  pages: ReturnType<typeof useEventPages>['pages']
  events: readonly ExplorerEvent[]
  /** No more pages need to be loaded. */
  isComplete: boolean
  filters: Filters
  chips: readonly Chip[]
  timeWindow: TimeWindow
  hotTime: HotTime | null
  /** The archived events that were found, which are among `events`. */
  archive: {
    query: string
    events: readonly ExplorerEvent[]
    onFound: (events: readonly ExplorerEvent[]) => void
  }
  live: ReturnType<typeof useLiveEvents>
  isLive: boolean
  sort: Sort
  isSmall: boolean
  columns: readonly ColumnName[]
  hasOwnColumns: boolean
  names: Names
  activeId: string | null
  openId: string | null
  bodyRef: React.RefObject<HTMLDivElement | null>
  onPrefetch: () => unknown
  onOpen: (id: string) => void
  refresh: () => void
  change: Change
}

/** The list of events, or the reason why it is empty, and the search of the archive. */
export function Results(props: ResultsProps) {
  const { pages, events, isComplete, timeWindow, hotTime, archive } = props
  const { isPending, isPlaceholderData, error } = pages
  if (isPending && error === null) return <ListSkeleton />
  if (error !== null && events.length === 0) return null
  // Hot events that are archived from now on are already listed.
  const isWhole = isComplete && !isPlaceholderData && error === null
  const isArchived = hotTime !== null && reachesArchive(hotTime, timeWindow, props.filters)
  return (
    <>
      <Listed {...props} />
      {isWhole && isArchived && <Archived key={archive.query} {...props} hotTime={hotTime} />}
    </>
  )
}

function Listed(props: ResultsProps) {
  const { pages, events, isComplete, filters, timeWindow, live, isLive, change } = props
  const { fetchNextPage, isFetching, isPlaceholderData } = pages
  const more = useCallback(() => void fetchNextPage(), [fetchNextPage])
  if (events.length === 0 && !isPlaceholderData) {
    return (
      <Suspense fallback={<ListSkeleton />}>
        <NoResults
          filters={filters}
          chips={props.chips}
          timeWindow={timeWindow}
          change={change}
          onEvent={props.refresh}
        />
      </Suspense>
    )
  }
  return (
    <>
      {isLive && live.waiting.length > 0 && (
        <NewPill count={live.waiting.length} onShowNew={live.showNew} />
      )}
      <EventList
        events={events}
        columns={props.columns}
        hasOwnColumns={props.hasOwnColumns}
        names={props.names}
        sort={props.sort}
        isSmall={props.isSmall}
        isLive={isLive}
        isBusy={isPlaceholderData}
        activeId={props.activeId}
        openId={props.openId}
        onPrefetch={props.onPrefetch}
        mayExclude={mayExclude(filters)}
        onOpen={props.onOpen}
        onFilter={change}
        change={change}
        onMore={isComplete || isFetching ? null : more}
        bodyRef={props.bodyRef}
      />
      <Footer {...props} />
    </>
  )
}

/** Counts the events that arrived while the member was scrolled down. Scrolling to the top shows them. */
function NewPill({ count, onShowNew }: { count: number; onShowNew: () => void }) {
  useEffect(() => {
    const onScroll = () => window.scrollY < 40 && onShowNew()
    window.addEventListener('scroll', onScroll, { passive: true })
    return () => window.removeEventListener('scroll', onScroll)
  }, [onShowNew])
  return (
    <div role="status" className={classes.pill}>
      <Button
        size="compact-sm"
        radius="xl"
        onClick={() => {
          onShowNew()
          window.scrollTo(0, 0)
        }}
      >
        Show {formatCount(count)} new {count === 1 ? 'event' : 'events'}
      </Button>
    </div>
  )
}

/** Explains why the list ends here. */
function Footer({ isComplete, events, timeWindow, sort, change }: ResultsProps) {
  const last = events.at(-1)
  if (!isComplete) {
    return <div className={`${classes.foot} soft`}>Loading earlier events…</div>
  }
  if (events.length >= LOADED_EVENTS_MAX && last) {
    return (
      <div className={classes.foot}>
        <span className="soft">{formatCount(events.length)} events loaded</span>
        <Button
          size="compact-sm"
          variant="default"
          onClick={() =>
            change(
              sort === 'receivedAt'
                ? { receivedTo: isoOf(Date.parse(last.receivedAt) + 1) }
                : exactPatch(timeWindow.fromMs, Date.parse(last.timestamp) + 1),
            )
          }
        >
          Show earlier events
        </Button>
      </div>
    )
  }
  return <div className={classes.foot} />
}

/** Shown if the period reaches into the archive. */
function Archived({ hotTime, filters, timeWindow, archive }: ResultsProps & { hotTime: HotTime }) {
  const [isSearching, setSearching] = useState(false)
  return (
    <section aria-label="Archive" className={`${classes.foot} soft`}>
      <span>
        Events before <TimeText at={hotTime.sinceMs} style="day" /> may be archived.
      </span>
      {isSearching ? (
        <Suspense>
          <ArchiveSearch filters={filters} timeWindow={timeWindow} onFound={archive.onFound} />
        </Suspense>
      ) : (
        <Button size="compact-sm" variant="default" onClick={() => setSearching(true)}>
          Search the archive
        </Button>
      )}
      <AnchorLink to="/app/exports">Export archived events</AnchorLink>
    </section>
  )
}

function ListSkeleton() {
  return (
    <div aria-busy="true" aria-label="Loading events" role="status">
      {Array.from({ length: SKELETON_ROWS }, (_, index) => (
        <Skeleton key={index} height={20} my={14} radius="sm" />
      ))}
    </div>
  )
}
