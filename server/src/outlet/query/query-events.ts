import { ApiError } from '../../errors.ts'
import type { SealedEvent } from '../../ledger/event.ts'
import { type EventFilter, filterText } from '../../ledger/event-filter.ts'
import { listEvents, needsScan } from '../../ledger/event-list-store.ts'
import {
  bytesPerWorkspace,
  fillPage,
  mergePages,
  type PagePlace,
  rowsPerWorkspace,
} from '../../ledger/event-page.ts'
import type { MonotonicClock } from '../../platform/clock.ts'
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
  /** Whether to keep scanning for a full page. A page can be short or empty if the answer is no. */
  mayContinue: () => boolean
  monotonic: MonotonicClock
}

export type EventPage = { events: SealedEvent[]; nextCursor: string | null }

/** Workspaces are read side by side, if the company has connections left. */
const READS_AT_ONCE_MAX = 4

/**
 * One page, newest first by (timestamp, id). Each workspace is read on its own, from its own index, and
 * the pages are merged here: no statement spans workspaces, and none sorts. A page of large events ends
 * before its limit, and so does one whose filters match few of the rows that were scanned.
 */
export async function queryEvents(
  db: Queryable,
  cursors: CursorCodec,
  query: EventQuery,
): Promise<EventPage> {
  const { workspaceIds, filter, hotSinceMs, limit, monotonic } = query
  const binding = bindingOf(query)
  const bytesMax = bytesPerWorkspace(workspaceIds.length)
  const rowsMax = rowsPerWorkspace(workspaceIds.length)
  const { events, next } = await fillPage(
    async (after, left) => {
      const page = { filter, hotSinceMs, after, limit: left, bytesMax, rowsMax }
      const pages = await readSideBySide(query, (workspaceId) =>
        listEvents(db, { workspaceId, ...page }),
      )
      return mergePages(pages, left)
    },
    {
      after: query.cursor === null ? null : placeOf(cursors.decode(query.cursor, binding)),
      limit,
      monotonic,
      mayContinue: () => needsScan(filter) && query.mayContinue(),
    },
  )
  const nextCursor = next && cursors.encode(`${next.timestampMs}/${next.id}`, binding)
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
