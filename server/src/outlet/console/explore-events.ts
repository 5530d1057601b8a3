import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { EQUALITY_FIELDS, type EventFilter, filterText } from '../../ledger/event-filter.ts'
import { listEvents, needsScan } from '../../ledger/event-list-store.ts'
import {
  bytesPerWorkspace,
  fillPage,
  mergePages,
  type PagePlace,
  type PartialPage,
  rowsPerWorkspace,
  SCANNED_ROWS_MAX,
} from '../../ledger/event-page.ts'
import type { MonotonicClock } from '../../platform/clock.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import { parseId, type UserId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'
import { listMatchingEvents, listNewestHolding } from './matching-event-store.ts'
import { planTextSearch } from './search-text.ts'
import type { Hot, Scope, Searches } from './searches.ts'

export type Exploration = Scope & {
  userId: UserId
  /** Null: all that the member sees. A cursor belongs to this choice. */
  workspaceId: WorkspaceId | null
  filter: EventFilter
  cursor: string | null
  limit: number
  monotonic: MonotonicClock
}

export type ExplorerPage = { events: SealedEvent[]; nextCursor: string | null }

/** Reading all events of these values and sorting them takes less than looking for them one by one. */
const EVENTS_BY_VALUE_MAX = 2_000
/** Fills a page of fifty with what every tenth event holds. */
const EVENTS_LOOKED_AT = 500

/** A page of the explorer, newest first by (timestamp, id). Can be short or empty, as in the API. */
export async function exploreEvents(
  searches: Searches,
  cursors: CursorCodec,
  query: Exploration,
): Promise<ExplorerPage> {
  const { workspaceIds, filter, hotSinceMs, limit, monotonic, signal } = query
  const binding = bindingOf(query)
  const bytesMax = bytesPerWorkspace(workspaceIds.length)
  const rowsMax = rowsPerWorkspace(workspaceIds.length)
  const scanned = new Set<WorkspaceId>()
  const { events, next } = await fillPage(
    async (after, left) => {
      const page = { filter, hotSinceMs, after, limit: left, bytesMax, rowsMax }
      const pages = await searches.readEach(query, (db, workspaceId, hot) =>
        readPage(db, { workspaceId, hot, ...page }, scanned),
      )
      return mergePages(pages, left)
    },
    {
      after: query.cursor === null ? null : placeOf(cursors.decode(query.cursor, binding)),
      limit,
      monotonic,
      mayContinue: () => needsScan(filter) && signal?.aborted !== true,
    },
  )
  const nextCursor = next && cursors.encode(`${next.timestampMs}/${next.id}`, binding)
  return { events, nextCursor }
}

export type PageQuery = {
  workspaceId: WorkspaceId
  hot: Hot
  hotSinceMs: number
  filter: EventFilter
  after: PagePlace | null
  limit: number
  bytesMax: number
  rowsMax: number
}

/** Adds the workspace to `scanned` if its text has to be searched event by event. */
async function readPage(
  db: Queryable,
  query: PageQuery,
  scanned: Set<WorkspaceId>,
): Promise<PartialPage> {
  const { workspaceId, hot, filter } = query
  const page = { ...query, hotFromId: hot.fromId }
  const { text } = filter
  if (text === null || scanned.has(workspaceId)) return await listEvents(db, page)
  // Reading a few hundred events takes less than finding the values that contain the text. With more
  // filters, finding a few hundred events that match them could mean reading all events.
  if (!needsScan({ ...filter, text: null })) {
    const newest = await listNewestHolding(db, query, { eventsMax: EVENTS_LOOKED_AT })
    if (newest.next !== null) return newest
  }
  const { kind, matches, seenSeq, events } = await planTextSearch(db, {
    workspaceId,
    filter: { ...filter, text },
    eventsMax: EVENTS_BY_VALUE_MAX,
  })
  // Other filters may match none of the events that have the values.
  const isBounded = events <= SCANNED_ROWS_MAX || !hasFieldFilter(filter)
  if (kind === 'values' && matches && isBounded) {
    return await listMatchingEvents(db, query, { matches, seenSeq })
  }
  scanned.add(workspaceId)
  return await listEvents(db, page)
}

function hasFieldFilter(filter: EventFilter): boolean {
  return filter.excluded !== null || EQUALITY_FIELDS.some((name) => filter[name] !== null)
}

/** What a cursor belongs to: the member, his choice, the filters and the order; not the page size. */
function bindingOf({ userId, workspaceId, filter }: Exploration): string {
  return `explorer/${userId}/${workspaceId ?? 'all'}/newest/${filterText(filter)}`
}

function placeOf(text: string | null): PagePlace {
  const [ms = '', id = ''] = text?.split('/') ?? []
  const parsedId = parseId(id)
  if (parsedId === null || !/^-?\d+$/.test(ms)) throw new ApiError('invalid_cursor')
  return { timestampMs: Number(ms), id: parsedId }
}
