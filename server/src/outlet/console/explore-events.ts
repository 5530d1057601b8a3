import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, filterText } from '../../ledger/event-filter.ts'
import { bytesPerWorkspace, mergePages, type PartialPage } from '../../ledger/event-page.ts'
import { listEvents, type PagePlace } from '../../ledger/event-store.ts'
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
}

export type ExplorerPage = { events: SealedEvent[]; nextCursor: string | null }

/** Reading all events of these values and sorting them takes less than looking for them one by one. */
const EVENTS_BY_VALUE_MAX = 2_000
/** Fills a page of fifty with what every tenth event holds. */
const EVENTS_LOOKED_AT = 500

/** A page of the explorer, newest first by (timestamp, id). */
export async function exploreEvents(
  searches: Searches,
  cursors: CursorCodec,
  query: Exploration,
): Promise<ExplorerPage> {
  const binding = bindingOf(query)
  const after = query.cursor === null ? null : placeOf(cursors.decode(query.cursor, binding))
  const { filter, limit } = query
  const page = { filter, after, limit, bytesMax: bytesPerWorkspace(query.workspaceIds.length) }
  const pages = await searches.readEach(query, (db, workspaceId, hot) =>
    readPage(db, { workspaceId, hot, hotSinceMs: query.hotSinceMs, ...page }),
  )
  const { events, hasMore } = mergePages(pages, limit)
  const last = events.at(-1)
  const nextCursor =
    hasMore && last ? cursors.encode(`${last.timestampMs}/${last.id}`, binding) : null
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
}

async function readPage(db: Queryable, query: PageQuery): Promise<PartialPage> {
  const { workspaceId, hot, filter } = query
  const page = { ...query, hotFromId: hot.fromId }
  const { text } = filter
  if (text === null) return await listEvents(db, page)
  // To look at a few hundred events takes less than to ask which values hold the text.
  const newest = await listNewestHolding(db, query, { eventsMax: EVENTS_LOOKED_AT })
  if (newest.hasMore) return newest
  const plan = await planTextSearch(db, {
    workspaceId,
    filter: { ...filter, text },
    eventsMax: EVENTS_BY_VALUE_MAX,
  })
  const { matches } = plan
  if (plan.kind === 'scan' || !matches) return await listEvents(db, page)
  return await listMatchingEvents(db, query, { matches, seenSeq: plan.seenSeq })
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
