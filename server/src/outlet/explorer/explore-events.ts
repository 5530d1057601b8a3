import type { SealedEvent } from '../../ledger/event.ts'
import { EQUALITY_FIELDS, type EventFilter, filterText } from '../../ledger/filter/event-filter.ts'
import { readPartialPage, needsScan } from '../../ledger/event-list-store.ts'
import {
  bytesPerWorkspace,
  fillPage,
  mergePages,
  type PartialPage,
  pagePositionText,
  readPagePosition,
  rowsPerWorkspace,
  SCANNED_ROWS_MAX,
} from '../../ledger/event-page.ts'
import { ReceivedSearch } from '../../ledger/search/received-page.ts'
import { BlockSearch } from '../../ledger/search/search-page.ts'
import type { MonotonicClock } from '../../platform/time/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import type { UserId, WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import {
  listMatchingEvents,
  listNewestContaining,
  type PageQuery,
} from './histogram/matching-event-store.ts'
import { planTextSearch } from './search-text.ts'
import type { Scope, Searches } from './searches.ts'

type Exploration = Scope & {
  userId: UserId
  /** Null for all workspaces the member can see. Cursors are bound to this choice. */
  workspaceId: WorkspaceId | null
  filter: EventFilter
  sort: ExplorerSort
  cursor: string | null
  limit: number
  monotonic: MonotonicClock
}

/** By the event's own time, or by the time of receipt; the last ones first. */
export const EXPLORER_SORTS = ['timestamp', 'receivedAt'] as const
type ExplorerSort = (typeof EXPLORER_SORTS)[number]

export type ExplorationPage = { events: SealedEvent[]; nextCursor: string | null }

/** Up to this many, reading all events with the values and sorting them is faster than scanning. */
const EVENTS_BY_VALUE_MAX = 2_000
/** Enough to fill a page of 50 if one event in ten matches. */
const EVENTS_SCANNED_FIRST = 500

/**
 * Returns a page of events, newest first by (timestamp, id), or the last received first. It can be short or empty,
 * as in the API.
 */
export async function exploreEvents(
  searches: Searches,
  cursors: CursorCodec,
  query: Exploration,
): Promise<ExplorationPage> {
  const { workspaceIds, filter, hotSinceMs, sort, limit, monotonic, signal } = query
  const binding = bindingOf(query)
  const position = cursors.read(query.cursor, binding)
  const bytesMax = bytesPerWorkspace(workspaceIds.length)
  const rowsMax = rowsPerWorkspace(workspaceIds.length)
  const search = { blocks: new BlockSearch(), scanned: new Set<WorkspaceId>() }
  const received = sort === 'receivedAt' ? new ReceivedSearch() : null
  const { events, next } = await fillPage(
    async (after, left) => {
      const page = { filter, hotSinceMs, after, limit: left, bytesMax, rowsMax }
      const pages = await searches.readEach(query, (db, workspaceId, hot) =>
        received
          ? received.readPage(db, { workspaceId, hot, hotFromId: hot.fromId, ...page })
          : readPage(db, { workspaceId, hot, ...page }, search),
      )
      return mergePages(pages, left, received ? 'received' : 'desc')
    },
    {
      after: position === null ? null : readPagePosition(position),
      limit,
      monotonic,
      mayContinue: () => (received !== null || needsScan(filter)) && signal?.aborted !== true,
    },
  )
  const nextCursor = next && cursors.encode(pagePositionText(next), binding)
  return { events, nextCursor }
}

/** What a request knows after its first round. */
type Search = {
  blocks: BlockSearch
  /** The workspaces whose fields have to be searched event by event. */
  scanned: Set<WorkspaceId>
}

async function readPage(db: Queryable, query: PageQuery, search: Search): Promise<PartialPage> {
  const { hot, filter, limit } = query
  const page = { ...query, hotFromId: hot.fromId }
  const { text } = filter
  if (text === null) return await search.blocks.readPage(db, page)
  const inFields = { ...filter, text, textIn: 'fields' as const }
  const inMetadata = { ...filter, textIn: 'metadata' as const }
  const pages = [
    await readFieldMatches(db, { ...query, filter: inFields }, search),
    await search.blocks.readPage(db, { ...page, filter: inMetadata }),
  ]
  return mergePages(pages, limit)
}

/** Returns a page of the events whose fields contain the text. */
async function readFieldMatches(
  db: Queryable,
  query: PageQuery & { filter: { text: string } },
  { scanned }: Search,
): Promise<PartialPage> {
  const { workspaceId, hot, filter } = query
  const page = { ...query, hotFromId: hot.fromId }
  if (scanned.has(workspaceId)) return await readPartialPage(db, page)
  // Reading a few hundred events is faster than finding the values that contain the text. With other
  // filters, finding a few hundred events that match them could mean reading all events.
  if (!needsScan({ ...filter, text: null })) {
    const newest = await listNewestContaining(db, query, { eventsMax: EVENTS_SCANNED_FIRST })
    if (newest.next !== null) return newest
  }
  const { kind, matches, seenSeq, events } = await planTextSearch(db, {
    workspaceId,
    filter,
    eventsMax: EVENTS_BY_VALUE_MAX,
  })
  // The other filters may match none of the events that have the values.
  const isBounded = events <= SCANNED_ROWS_MAX || !hasFieldFilter(filter)
  if (kind === 'values' && matches && isBounded) {
    return await listMatchingEvents(db, query, { matches, seenSeq })
  }
  scanned.add(workspaceId)
  return await readPartialPage(db, page)
}

function hasFieldFilter(filter: EventFilter): boolean {
  const { receivedFromMs, receivedToMs, anyOf, excluded, actorRole, metadata } = filter
  return [
    receivedFromMs,
    receivedToMs,
    anyOf,
    excluded,
    actorRole,
    metadata,
    ...EQUALITY_FIELDS.map((name) => filter[name]),
  ].some((value) => value !== null)
}

/** Binds a cursor to the member, the chosen workspace, the filters and the order, but not the page size. */
function bindingOf({ userId, workspaceId, filter, sort }: Exploration): string {
  const order = sort === 'receivedAt' ? 'received' : 'newest'
  return `explorer/${userId}/${workspaceId ?? 'all'}/${order}/${filterText(filter)}`
}
