import type { Static } from 'typebox'
import { shapeOf } from '../../outlet/event-type/event-type.ts'
import type { ListedKey, ListedType } from '../../outlet/event-type/event-type-list-store.ts'
import { readTypePage } from '../../outlet/event-type/event-type-page.ts'
import type { CursorCodec } from '../../platform/cursor.ts'
import type { CompanyId, UserId, WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { listJson } from '../page-json.ts'
import type { EventTypePage, EventTypeQuery } from '../schema/event-type.ts'

const LIMIT_DEFAULT = 50

export const NO_TYPES_JSON = JSON.stringify({
  data: [],
  nextCursor: null,
  truncated: false,
  fromSeq: null,
  upToSeq: null,
})

type EventTypeRecord = Static<typeof EventTypePage>['data'][number]

/** Returns a page of event types as text, because a large one is serialized in time slices. */
export async function eventTypePageJson(
  { db, cursors, clock }: { db: Queryable; cursors: CursorCodec; clock: Clock },
  {
    companyId,
    workspaceId,
    reader = null,
    query,
  }: {
    companyId: CompanyId
    workspaceId: WorkspaceId
    /** The member who reads it, if cursors belong to a member and not to the company. */
    reader?: UserId | null
    query: Static<typeof EventTypeQuery>
  },
): Promise<string> {
  const { limit = LIMIT_DEFAULT, category = null, action = null, flag = null } = query
  const filter = { category, action, flag }
  const binding = JSON.stringify(['event-types', companyId, workspaceId, reader, filter])
  const position = cursors.read(query.cursor, binding)
  const nowMs = clock()
  const { types, keys, nextNo, isTruncated, fromSeq, upToSeq } = await readTypePage(db, {
    workspaceId,
    ...filter,
    afterNo: position === null ? null : Number(position),
    limit,
    nowMs,
  })
  const nextCursor = nextNo === null ? null : cursors.encode(String(nextNo), binding)
  return await listJson('data', types, {
    record: (type) => eventTypeRecord(type, keys.get(type.typeNo) ?? [], nowMs),
    owner: companyId,
    rest: { nextCursor, truncated: isTruncated, fromSeq, upToSeq },
  })
}

function eventTypeRecord(
  type: ListedType,
  rows: readonly ListedKey[],
  nowMs: number,
): EventTypeRecord {
  const { category, action, events, isNew, isDrifting } = type
  const { keys, changes } = shapeOf(rows, nowMs)
  return {
    category,
    action,
    count: events,
    firstSeenAt: type.firstSeenAt.toISOString(),
    firstSeq: type.firstSeq,
    lastSeenAt: type.lastSeenAt.toISOString(),
    lastSeq: type.lastSeq,
    flags: [...(isNew ? ['NEW' as const] : []), ...(isDrifting ? ['DRIFT' as const] : [])],
    metadataKeys: keys.map(({ path, types, events: count, firstSeenAt, lastSeenAt }) => ({
      path,
      types,
      count,
      firstSeenAt: firstSeenAt.toISOString(),
      lastSeenAt: lastSeenAt.toISOString(),
    })),
    drift: changes.map(({ kind, path, type: jsonType, seenAt, eventId }) => ({
      kind,
      path,
      type: jsonType,
      seenAt: seenAt.toISOString(),
      eventId,
    })),
    truncated: type.isTruncated,
  }
}
