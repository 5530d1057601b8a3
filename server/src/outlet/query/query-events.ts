import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, filterText } from '../../ledger/filter/event-filter.ts'
import { needsScan } from '../../ledger/event-list-store.ts'
import {
  bytesPerWorkspace,
  fillPage,
  mergePages,
  type PageOrder,
  pagePositionText,
  readPagePosition,
  rowsPerWorkspace,
} from '../../ledger/event-page.ts'
import { conditionsText, type ListConditions } from '../../ledger/filter/list-conditions.ts'
import type { ChainReads } from '../../ledger/replica/chain-reads.ts'
import { BlockSearch } from '../../ledger/search/search-page.ts'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'

export type EventQuery = {
  companyId: CompanyId
  /** Null for all of the company's workspaces. Cursors are bound to this choice. */
  workspaceId: WorkspaceId | null
  /** The workspaces that this choice currently includes. */
  workspaceIds: readonly WorkspaceId[]
  filter: EventFilter
  conditions: ListConditions
  order: PageOrder
  hotSinceMs: number
  cursor: string | null
  limit: number
  /** Takes a permit to read another workspace in parallel, or returns null if none is free. */
  tryTakeRead?: () => Disposable | null
  /** Whether to keep scanning for a full page. If it returns false, a page can be short or empty. */
  mayContinue: () => boolean
  monotonic: MonotonicClock
}

type EventQueryPage = { events: SealedEvent[]; nextCursor: string | null }

/** Workspaces are read in parallel if the company has connections left. */
const READS_AT_ONCE_MAX = 4

/**
 * Returns one page, ordered by (timestamp, id). Reads each workspace separately by its index and merges
 * the pages, so no statement spans workspaces or sorts. A page can have fewer events than its limit if the
 * events are large, or if the filters match few of the scanned rows.
 */
export async function queryEvents(
  reads: ChainReads,
  cursors: CursorCodec,
  query: EventQuery,
): Promise<EventQueryPage> {
  const { workspaceIds, filter, conditions, order, hotSinceMs, limit, monotonic } = query
  const binding = bindingOf(query)
  const position = cursors.read(query.cursor, binding)
  const bytesMax = bytesPerWorkspace(workspaceIds.length)
  const rowsMax = rowsPerWorkspace(workspaceIds.length)
  const search = new BlockSearch()
  const { events, next } = await fillPage(
    async (after, left) => {
      const sizes = { limit: left, bytesMax, rowsMax }
      const page = { filter, conditions, order, hotSinceMs, after, ...sizes }
      const pages = await readInParallel(query, (workspaceId) =>
        reads.read(workspaceId, ({ db }) => search.readPage(db, { workspaceId, ...page })),
      )
      return mergePages(pages, left, order)
    },
    {
      after: position === null ? null : readPagePosition(position),
      limit,
      monotonic,
      mayContinue: () => needsScan(filter, conditions) && query.mayContinue(),
    },
  )
  const nextCursor = next && cursors.encode(pagePositionText(next), binding)
  return { events, nextCursor }
}

/** Binds a cursor to the tenant, filters and order, but not to the page size. */
function bindingOf({ companyId, workspaceId, filter, conditions, order }: EventQuery): string {
  const list = `${order === 'asc' ? 'oldest' : 'newest'}/${filterText(filter)}`
  return `events/${companyId}/${workspaceId ?? 'all'}/${list}${conditionsText(conditions)}`
}

async function readInParallel<T>(
  { workspaceIds, tryTakeRead }: Pick<EventQuery, 'workspaceIds' | 'tryTakeRead'>,
  read: (workspaceId: WorkspaceId) => Promise<T>,
): Promise<T[]> {
  const results: T[] = []
  const left = workspaceIds.values()
  const readRemaining = async (): Promise<void> => {
    for (const workspaceId of left) results.push(await read(workspaceId))
  }
  const readWithPermit = async (permit: Disposable): Promise<void> => {
    using _permit = permit
    await readRemaining()
  }
  const reads: Promise<void>[] = []
  const extraReadsMax = Math.min(READS_AT_ONCE_MAX, workspaceIds.length) - 1
  while (reads.length < extraReadsMax) {
    const permit = tryTakeRead?.()
    if (!permit) break
    reads.push(readWithPermit(permit))
  }
  await Promise.all([...reads, readRemaining()])
  return results
}
