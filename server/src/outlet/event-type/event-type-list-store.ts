import { type RawBuilder, sql } from 'kysely'
import type { JsonType } from '../../ledger/event-type/metadata-keys.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

export const TYPE_FLAGS = ['NEW', 'DRIFT'] as const
type TypeFlag = (typeof TYPE_FLAGS)[number]

/**
 * A type is new if its first event is after both `newSince` and `newAfterSeq`. It has drifted if its shape
 * changed after `driftSince`.
 */
type FlagThresholds = { newSince: Date; newAfterSeq: number; driftSince: Date }

export type ListedType = {
  typeNo: number
  category: string
  action: string
  events: number
  firstSeq: number
  firstSeenAt: Date
  lastSeq: number
  lastSeenAt: Date
  isTruncated: boolean
  isNew: boolean
  isDrifting: boolean
  /** How many rows `listTypeKeys` returns for it. */
  keyRows: number
}

export type TypeConditions = {
  workspaceId: WorkspaceId
  category: string | null
  action: string | null
  flag: TypeFlag | null
  afterNo: number | null
  limit: number
}

/** Lists types by category and action, after the type `afterNo`. */
export async function listTypes(
  db: Queryable,
  {
    workspaceId,
    category,
    action,
    flag,
    newSince,
    newAfterSeq,
    driftSince,
    afterNo,
    limit,
  }: FlagThresholds & TypeConditions,
): Promise<ListedType[]> {
  const isNew = sql`(first_seen_at > ${newSince} and first_seq > ${newAfterSeq})`
  const isDrifting = sql`coalesce(drifted_at > ${driftSince}, false)`
  const conditions: RawBuilder<unknown>[] = [sql`workspace_id = ${workspaceId}`]
  if (category !== null) conditions.push(sql`category = ${category}`)
  if (action !== null) conditions.push(sql`action = ${action}`)
  if (flag !== null) conditions.push(flag === 'NEW' ? isNew : isDrifting)
  if (afterNo !== null) {
    // Types are never deleted, so the one that a cursor names is still there.
    conditions.push(sql`
      (category, action) > (select category, action from event_type
                             where workspace_id = ${workspaceId} and type_no = ${afterNo})`)
  }
  const { rows } = await sql<ListedType>`
    select type_no as "typeNo", category, action, events,
           first_seq as "firstSeq", first_seen_at as "firstSeenAt",
           last_seq as "lastSeq", last_seen_at as "lastSeenAt", is_truncated as "isTruncated",
           ${isNew} as "isNew", ${isDrifting} as "isDrifting",
           (select count(*) from event_type_key k
             where k.workspace_id = event_type.workspace_id and k.type_no = event_type.type_no) as "keyRows"
      from event_type
     where ${sql.join(conditions, sql` and `)}
     order by category, action
     limit ${limit}`.execute(db)
  return rows
}

/** A key with one of its JSON types. */
export type ListedKey = {
  typeNo: number
  path: string
  jsonType: JsonType
  events: number
  firstSeq: number
  firstSeenAt: Date
  firstEventId: string
  lastSeenAt: Date
  isDrift: boolean
}

/** The keys of types, each path in the order in which its JSON types appeared. */
export async function listTypeKeys(
  db: Queryable,
  workspaceId: WorkspaceId,
  typeNos: readonly number[],
): Promise<ListedKey[]> {
  const { rows } = await sql<ListedKey>`
    select type_no as "typeNo", path, json_type as "jsonType", events,
           first_seq as "firstSeq", first_seen_at as "firstSeenAt", first_event_id as "firstEventId",
           last_seen_at as "lastSeenAt", is_drift as "isDrift"
      from event_type_key
     where workspace_id = ${workspaceId} and type_no = any (${typeNos}::int[])
     order by type_no, path, first_seq`.execute(db)
  return rows
}
