import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, filterText } from '../../ledger/event-filter.ts'
import { bytesPerWorkspace, mergePages } from '../../ledger/event-page.ts'
import { listEvents, type PagePlace } from '../../ledger/event-store.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import { type CompanyId, parseId, type WorkspaceId } from '../../platform/id.ts'
import type { PageReads } from './page-reads.ts'

export type EventQuery = {
  companyId: CompanyId
  /** Null: all of the company's. A cursor belongs to this choice. */
  workspaceId: WorkspaceId | null
  /** What the choice comes to at this moment. */
  workspaceIds: readonly WorkspaceId[]
  filter: EventFilter
  hotSinceMs: number
  cursor: string | null
  limit: number
  /** Aborted when the caller has disconnected. */
  signal?: AbortSignal
}

export type EventPage = { events: SealedEvent[]; nextCursor: string | null }

/** Workspaces are read side by side, but one query must not take the whole pool. */
const READS_AT_ONCE_MAX = 4

/**
 * One page, newest first by (timestamp, id). Several workspaces are read one by one, each a page
 * from its own index, and merged here: no statement spans workspaces, and none sorts. A page of large
 * events ends before its limit.
 */
export async function queryEvents(
  reads: PageReads,
  cursors: CursorCodec,
  query: EventQuery,
): Promise<EventPage> {
  const binding = bindingOf(query)
  const after = query.cursor === null ? null : placeOf(cursors.decode(query.cursor, binding))
  const { limit } = query
  const bytesMax = bytesPerWorkspace(query.workspaceIds.length)
  const pages = await readInTurns(query.workspaceIds, (workspaceId) =>
    reads.read(query, (db) =>
      listEvents(db, {
        workspaceId,
        filter: query.filter,
        hotSinceMs: query.hotSinceMs,
        after,
        limit,
        bytesMax,
      }),
    ),
  )
  const { events, hasMore } = mergePages(pages, limit)
  const last = events.at(-1)
  const nextCursor =
    hasMore && last ? cursors.encode(`${last.timestampMs}/${last.id}`, binding) : null
  return { events, nextCursor }
}

/** What a cursor belongs to: tenant, filters and order, but not the page size. */
function bindingOf({ companyId, workspaceId, filter }: EventQuery): string {
  return `events/${companyId}/${workspaceId ?? 'all'}/newest/${filterText(filter)}`
}

function placeOf(text: string | null): PagePlace {
  const [ms = '', id = ''] = text?.split('/') ?? []
  const parsedId = parseId(id)
  if (parsedId === null || !/^-?\d+$/.test(ms)) throw new ApiError('invalid_cursor')
  return { timestampMs: Number(ms), id: parsedId }
}

async function readInTurns<T>(
  workspaceIds: readonly WorkspaceId[],
  read: (workspaceId: WorkspaceId) => Promise<T>,
): Promise<T[]> {
  const results: T[] = []
  for (let start = 0; start < workspaceIds.length; start += READS_AT_ONCE_MAX) {
    const turn = workspaceIds.slice(start, start + READS_AT_ONCE_MAX)
    results.push(...(await Promise.all(turn.map(read))))
  }
  return results
}
