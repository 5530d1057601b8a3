import { useMediaQuery } from '@mantine/hooks'
import {
  lazy,
  type ReactNode,
  Suspense,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react'
import { onReconnect } from '../../api/connection.ts'
import { isNotFound } from '../../api/not-found.ts'
import { whenConnected } from '../../api/when-connected.ts'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { useSession } from '../../api/session-context.tsx'
import { columnsOf, type Names } from './list/columns.ts'
import { LOADED_EVENTS_MAX, useEventPages } from './event-queries.ts'
import { type ExplorerEvent, mergeEvents, since, withArchived } from './explorer-event.ts'
import { type DialogName, ExplorerDialogs } from './ExplorerDialogs.tsx'
import { ExplorerHeader } from './ExplorerHeader.tsx'
import classes from './ExplorerPage.module.css'
import { useFacetsShown } from './facets/use-facets-shown.ts'
import { FilterBar } from './filter/FilterBar.tsx'
import { chipsOf, type Filters, mayExclude } from '../../query/filters.ts'
import { HistogramSection } from './histogram/HistogramSection.tsx'
import { Results } from './list/Results.tsx'
import { type Change, type Explorer, useExplorer } from './use-explorer.ts'
import { useExplorerKeys } from './use-explorer-keys.ts'
import { useLiveEvents } from './list/use-live-events.ts'
import { useNames } from './filter/use-names.ts'
import { useTimeZone } from '../../parts/time/time-zone.ts'
import { useMetadataPaths } from './histogram/use-metadata-paths.ts'
import { useShownWindow } from './use-shown-window.ts'
import { useOpenEvent } from './event/use-open-event.ts'

const SMALL = '(max-width: 768px)'

const LIVE_PAUSED_TEXT =
  'Live updates paused: the service isn’t responding. Retrying. New events appear once it responds.'

// Not part of the first load: fetched when the pointer or the focus enters a row.
const loadPanel = () => import('./event/EventPanel.tsx')
const ViewBar = lazy(
  whenConnected(async () => ({ default: (await import('./view/ViewBar.tsx')).ViewBar })),
)
const FacetPanel = lazy(
  whenConnected(async () => ({ default: (await import('./facets/FacetPanel.tsx')).FacetPanel })),
)
const NoWorkspace = lazy(
  whenConnected(async () => ({ default: (await import('./list/NoWorkspace.tsx')).NoWorkspace })),
)
const EventPanel = lazy(whenConnected(async () => ({ default: (await loadPanel()).EventPanel })))

/** The page to search events. The URL contains the whole query. */
export function ExplorerPage() {
  const explorer = useExplorer()
  const { search, filters, timeWindow, refresh, change } = explorer
  const isLive = search.live !== undefined
  const isSmall = useMediaQuery(SMALL, undefined, { getInitialValueInEffect: false }) ?? false
  const [dialog, setDialog] = useState<DialogName | null>(null)
  const [linkedId, setLinkedId] = useState<string | null>(null)
  const body = useRef<HTMLDivElement>(null)
  const searchField = useRef<HTMLInputElement>(null)

  const { found, ...shown } = useResults(explorer)
  const { pages, events, hotTime, live, names, chips, archive } = found
  const opened = useOpenEvent({ events, openId: search.event ?? null, body, isSmall, change })
  useExplorerKeys({ explorer, opened, searchField, onDialog: setDialog })
  useScrollToTopOnNewQuery(explorer)
  useReload(pages.error, refresh)

  const otherWorkspace = useOtherWorkspace(filters.workspaceId, names)
  const asked = { filters, chips, timeWindow, change }
  const known = { hotTime, names }
  return (
    <div>
      <ExplorerHeader
        search={search}
        timeWindow={timeWindow}
        liveState={live.state}
        change={change}
        onRefresh={refresh}
        onDialog={setDialog}
      />
      <OpenView explorer={explorer} linkedId={linkedId} />
      <FilterBar {...asked} otherWorkspace={otherWorkspace} searchRef={searchField} />
      <HistogramSection
        {...shown}
        explorer={explorer}
        isLive={isLive}
        isFailed={pages.error !== null}
        hotTime={hotTime}
        projectName={names.project}
      />
      <ListError error={pages.error} onRetry={refresh} change={change} />
      <LivePaused isPaused={isLive && live.state === 'lost'} />
      <WithFacets explorer={explorer} isLive={isLive} events={events} names={names}>
        <Results
          {...asked}
          {...found}
          isLive={isLive}
          isSmall={isSmall}
          activeId={opened.activeId}
          openId={opened.openId}
          bodyRef={body}
          onPrefetch={loadPanel}
          onOpen={opened.open}
          refresh={refresh}
        />
      </WithFacets>
      <OpenedEvent {...known} opened={opened} filters={filters} archive={archive} change={change} />
      <ExplorerDialogs
        {...asked}
        {...known}
        name={dialog}
        onClose={() => setDialog(null)}
        search={search}
        onLinked={setLinkedId}
      />
    </div>
  )
}

/** The list, with the facets beside it if the member chose to see them. */
function WithFacets({
  explorer,
  isLive,
  events,
  names,
  children,
}: {
  explorer: Explorer
  isLive: boolean
  events: readonly ExplorerEvent[]
  names: Names
  children: ReactNode
}) {
  const [isShown] = useFacetsShown()
  return (
    <div className={isShown ? classes.withFacets : undefined}>
      {isShown && (
        <Suspense fallback={<span />}>
          <FacetPanel
            query={explorer}
            isLive={isLive}
            events={events}
            projectName={names.project}
            change={explorer.change}
          />
        </Suspense>
      )}
      <div className={classes.results}>{children}</div>
    </div>
  )
}

function OpenView({ explorer, linkedId }: { explorer: Explorer; linkedId: string | null }) {
  const { view } = explorer.search
  if (view === undefined) return null
  return (
    <Suspense>
      <ViewBar key={view} explorer={explorer} linkedId={linkedId} />
    </Suspense>
  )
}

function LivePaused({ isPaused }: { isPaused: boolean }) {
  return (
    <div role="status" className={classes.lost}>
      {isPaused && LIVE_PAUSED_TEXT}
    </div>
  )
}

/** The events to list, with their columns, and the names that the filters show. */
function useResults(explorer: Explorer) {
  const { search, filters, timeWindow, sort, askedAt, refresh } = explorer
  const { workspaceId } = filters
  const isLive = search.live !== undefined
  const { pages, loaded, hotTime } = useEventPages(explorer)
  const isAtTop = useCallback(() => window.scrollY < 40, [])
  const { shown, reloads } = useShownWindow(timeWindow, isLive)
  const { fromMs } = shown
  const live = useLiveEvents({ filters, fromMs, sort, isLive, askedAt, refresh, isAtTop })
  const isFull = !pages.hasNextPage
  const merged = useMemo(
    () => mergeEvents(live.shown, loaded, { isFull, sort }),
    [live.shown, loaded, isFull, sort],
  )
  const hot = useMemo(
    () => (isLive ? since(merged, fromMs, sort) : merged),
    [isLive, merged, fromMs, sort],
  )
  const isComplete = isFull || (sort === 'timestamp' && hot.length < merged.length)
  const hasAll = isComplete && merged.length < LOADED_EVENTS_MAX
  const isCurrent = isLive && !pages.isPending && !pages.isPlaceholderData
  const listedCount = isCurrent && hasAll ? hot.length + live.waiting.length : null
  const archive = useArchived(JSON.stringify([filters, timeWindow, askedAt]))
  const events = useMemo(() => withArchived(hot, archive.events, sort), [hot, archive.events, sort])
  const names = useNames(workspaceId)
  const timeZone = useTimeZone()
  // oxlint-disable-next-line react-hooks/exhaustive-deps -- the chips show times in the time zone
  const chips = useMemo(() => chipsOf(filters, names.project), [filters, names, timeZone])
  const columns = useMemo(
    () => columnsOf(search.columns, { isOfAll: workspaceId === undefined, sort }),
    [search.columns, workspaceId, sort],
  )
  const metadataPaths = useMetadataPaths(loaded)
  const hasOwnColumns = search.columns !== undefined
  const list = { columns, hasOwnColumns, sort, names, chips }
  const found = { pages, events, isComplete, hotTime, live, archive, ...list }
  return { found, shown, reloads, listedCount, metadataPaths }
}

const NONE: readonly ExplorerEvent[] = []

/** The archived events that the member's search has found for this query. */
function useArchived(query: string) {
  const [found, setFound] = useState({ query, events: NONE })
  const onFound = useCallback(
    (events: readonly ExplorerEvent[]) =>
      setFound((before) => ({
        query,
        events: [...(before.query === query ? before.events : NONE), ...events],
      })),
    [query],
  )
  return { query, events: found.query === query ? found.events : NONE, onFound }
}

/** The name of the workspace in the URL, if the member can't choose it from the list. */
function useOtherWorkspace(workspaceId: string | undefined, names: Names): string | null {
  const { session } = useSession()
  const isOffered = session.workspaces.some(
    ({ id, kind }) => id === workspaceId && kind === 'CUSTOMER',
  )
  return workspaceId === undefined || isOffered ? null : names.workspace(workspaceId)
}

function OpenedEvent({
  opened,
  filters,
  archive,
  names,
  change,
}: {
  opened: ReturnType<typeof useOpenEvent>
  archive: ReturnType<typeof useArchived>
  filters: Filters
  names: Names
  change: Change
}) {
  if (opened.openId === null) return null
  return (
    <Suspense>
      <EventPanel
        eventId={opened.openId}
        listed={opened.listed}
        isArchived={archive.events.some(({ id }) => id === opened.openId)}
        workspaceId={filters.workspaceId}
        names={names}
        mayExclude={mayExclude(filters)}
        onClose={opened.close}
        onOpen={opened.open}
        change={change}
      />
    </Suspense>
  )
}

/** The list is that of a workspace, so it isn't found if the member can't see the workspace. */
function ListError({
  error,
  onRetry,
  change,
}: {
  error: Error | null
  onRetry: () => void
  change: Change
}) {
  if (!isNotFound(error)) return <ErrorBox error={error} onRetry={onRetry} />
  return (
    <Suspense>
      <NoWorkspace change={change} />
    </Suspense>
  )
}

/** Reloads a list that failed to load, once the service responds again. */
function useReload(error: Error | null, refresh: () => void): void {
  useEffect(() => (error ? onReconnect(refresh) : undefined), [error, refresh])
}

/** Scrolls to the top when the query changes. On load, the browser's scroll position stays. */
function useScrollToTopOnNewQuery({ filters, search: { range, from, to, sort } }: Explorer): void {
  const question = JSON.stringify([filters, range, from, to, sort])
  const asked = useRef(question)
  useEffect(() => {
    if (asked.current === question) return
    asked.current = question
    window.scrollTo(0, 0)
  }, [question])
}
