import { Button } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import type { paths } from '../../../api/schema.d.ts'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { formatBytes, formatCount } from '../../../parts/text/format.ts'
import type { Filters } from '../../../query/filters.ts'
import { queryFilters } from '../../../query/metadata.ts'
import type { TimeWindow } from '../../../query/time-window.ts'
import { timesOf } from '../event-queries.ts'
import type { ExplorerEvent } from '../explorer-event.ts'
import classes from './EventList.module.css'

const PAGE_EVENTS = 200
/** The search pauses here, because a browser can't list a whole archive. */
const FOUND_PER_RUN_MAX = 500

type Progress =
  paths['/dashboard/events/archived']['get']['responses'][200]['content']['application/json']['progress']
type ArchivePage = { data: ExplorerEvent[]; nextCursor: string | null; progress: Progress }

type Status = 'running' | 'paused' | 'canceled' | 'failed' | 'done'
type SearchState = { status: Status; progress: Progress | null; found: number; error: Error | null }

type SearchProps = {
  filters: Filters
  timeWindow: TimeWindow
  onFound: (events: readonly ExplorerEvent[]) => void
}

/** Searches the archive, from the last file to the first, and shows how far it is. */
export function ArchiveSearch(props: SearchProps) {
  const { status, progress, found, error, setStatus } = useArchiveSearch(props)
  const isRunning = status === 'running'
  const isOver = status === 'done'
  return (
    <div className={classes.archive}>
      {!isOver && progress !== null && (
        <>
          <progress
            aria-label="Searched part of the archive"
            max={Math.max(1, progress.bytes)}
            value={progress.bytesSearched}
          />
          <span className="numeric">{progressText(progress)}</span>
        </>
      )}
      <span role="status">{statusText(status, found)}</span>
      {isRunning && (
        <Button size="compact-sm" variant="default" onClick={() => setStatus('canceled')}>
          Cancel
        </Button>
      )}
      {!isRunning && !isOver && (
        <Button size="compact-sm" variant="default" onClick={() => setStatus('running')}>
          Continue searching
        </Button>
      )}
      <ErrorBox error={error} />
    </div>
  )
}

function progressText({ segments, segmentsSearched, bytes, bytesSearched }: Progress): string {
  const files = `${formatCount(segmentsSearched)} of ${formatCount(segments)} archive files`
  return `Searched ${files} (${formatBytes(bytesSearched)} of ${formatBytes(bytes)})`
}

function statusText(status: Status, found: number): string {
  const events = `${formatCount(found)} archived ${found === 1 ? 'event' : 'events'}`
  switch (status) {
    case 'running':
      return 'Searching…'
    case 'paused':
      return `Search paused. Found ${events} so far.`
    case 'canceled':
      return `Search canceled. Found ${events}.`
    case 'failed':
      return `Search failed. Found ${events} before that.`
    case 'done':
      return `Found ${events}. The chart doesn’t count them.`
    default:
      return status satisfies never
  }
}

function useArchiveSearch({ filters, timeWindow, onFound }: SearchProps) {
  const [state, setState] = useState<SearchState>({
    status: 'running',
    progress: null,
    found: 0,
    error: null,
  })
  const cursor = useRef<string | null>(null)
  // An event can be found twice.
  const ids = useRef(new Set<string>())
  const { status } = state
  useEffect(() => {
    if (status !== 'running') return undefined
    const stop = new AbortController()
    const run = async () => {
      const foundBefore = ids.current.size
      for (;;) {
        const page = await readPage({ filters, timeWindow }, cursor.current, stop.signal)
        if (stop.signal.aborted) return
        cursor.current = page.nextCursor
        for (const { id } of page.data) ids.current.add(id)
        if (page.data.length > 0) onFound(page.data)
        const found = ids.current.size
        const isPaused = found - foundBefore >= FOUND_PER_RUN_MAX
        const next = page.nextCursor === null ? 'done' : isPaused ? 'paused' : 'running'
        setState({ status: next, progress: page.progress, found, error: null })
        if (next !== 'running') return
      }
    }
    run().catch((error: unknown) => {
      if (stop.signal.aborted || !(error instanceof Error)) return
      setState((before) => ({ ...before, status: 'failed', error }))
    })
    return () => stop.abort()
  }, [status, filters, timeWindow, onFound])
  const setStatus = (next: Status) =>
    setState((before) => ({ ...before, status: next, error: null }))
  return { ...state, setStatus }
}

async function readPage(
  { filters, timeWindow }: Pick<SearchProps, 'filters' | 'timeWindow'>,
  cursor: string | null,
  signal: AbortSignal,
): Promise<ArchivePage> {
  const query = {
    limit: PAGE_EVENTS,
    ...(cursor !== null && { cursor }),
    ...timesOf(timeWindow),
    ...queryFilters(filters),
  }
  return await unwrap(client.GET('/dashboard/events/archived', { params: { query }, signal }))
}
