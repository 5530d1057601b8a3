import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, filterText } from '../../ledger/event-filter.ts'
import { bytesPerWorkspace, mergePages } from '../../ledger/event-page.ts'
import { listEvents, type PagePlace } from '../../ledger/event-store.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import { type CompanyId, parseId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'

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
  /** Asks for leave to read another workspace at the same time; null if there is none. */
  tryTakeRead?: () => Disposable | null
}

export type EventPage = { events: SealedEvent[]; nextCursor: string | null }

/** Workspaces are read side by side, if the company has connections left. */
const READS_AT_ONCE_MAX = 4

/**
 * One page, newest first by (timestamp, id). Several workspaces are read one by one, each a page
 * from its own index, and merged here: no statement spans workspaces, and none sorts. A page of large
 * events ends before its limit.
 */
export async function queryEvents(
  db: Queryable,
  cursors: CursorCodec,
  query: EventQuery,
): Promise<EventPage> {
  const binding = bindingOf(query)
  const after = query.cursor === null ? null : placeOf(cursors.decode(query.cursor, binding))
  const { limit } = query
  const bytesMax = bytesPerWorkspace(query.workspaceIds.length)
  const pages = await readSideBySide(query, (workspaceId) =>
    listEvents(db, {
      workspaceId,
      filter: query.filter,
      hotSinceMs: query.hotSinceMs,
      after,
      limit,
      bytesMax,
    }),
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

async function readSideBySide<T>(
  { workspaceIds, tryTakeRead }: Pick<EventQuery, 'workspaceIds' | 'tryTakeRead'>,
  read: (workspaceId: WorkspaceId) => Promise<T>,
): Promise<T[]> {
  const results: T[] = []
  const left = workspaceIds.values()
  const readOn = async (): Promise<void> => {
    for (const workspaceId of left) results.push(await read(workspaceId))
  }
  const readBeside = async (leave: Disposable): Promise<void> => {
    using _leave = leave
    await readOn()
  }
  const reads: Promise<void>[] = []
  const sideReadsMax = Math.min(READS_AT_ONCE_MAX, workspaceIds.length) - 1
  while (reads.length < sideReadsMax) {
    const leave = tryTakeRead?.()
    if (!leave) break
    reads.push(readBeside(leave))
  }
  await Promise.all([...reads, readOn()])
  return results
}
