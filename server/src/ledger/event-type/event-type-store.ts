import { sql } from 'kysely'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { KeyUpdate, KnownKey, KnownType, TypedEvent, TypeUpdate } from './learn-types.ts'

/** The types count the events above `floorSeq`, up to and including `seenSeq`. */
export type TypeWatermark = {
  floorSeq: number
  seenSeq: number
  /** The number of the last event before the upgrade to a release with event types, or 0. */
  baselineSeq: number
  isTruncated: boolean
}

export async function findTypeWatermark(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<TypeWatermark | null> {
  const { rows } = await sql<TypeWatermark>`
    select floor_seq as "floorSeq", seen_seq as "seenSeq", baseline_seq as "baselineSeq",
           is_truncated as "isTruncated"
      from event_type_watermark where workspace_id = ${workspaceId}`.execute(db)
  return rows[0] ?? null
}

/** False if the watermark isn't at `fromSeq`, because another node was faster. */
export async function moveTypeWatermark(
  trx: Queryable,
  workspaceId: WorkspaceId,
  { fromSeq, toSeq, isTruncated }: { fromSeq: number; toSeq: number; isTruncated: boolean },
): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update event_type_watermark
       set seen_seq = ${toSeq}, is_truncated = is_truncated or ${isTruncated}, advanced_at = now()
     where workspace_id = ${workspaceId} and seen_seq = ${fromSeq}`.execute(trx)
  return numAffectedRows === 1n
}

/**
 * A run of a chain above `afterSeq`, up to `limit` events or until their metadata reaches `bytesMax`, and at
 * least one. PostgreSQL reads the lengths without the values. `reachedSeq` is the end of the run.
 */
export async function listTypedRun(
  db: Queryable,
  {
    workspaceId,
    afterSeq,
    toSeq,
    limit,
    bytesMax,
  }: {
    workspaceId: WorkspaceId
    afterSeq: number
    toSeq: number
    limit: number
    bytesMax: number
  },
): Promise<{ events: TypedEvent[]; reachedSeq: number }> {
  const { rows } = await sql<TypedEvent & { isLast: boolean }>`
    ${KEEP_PLAN}
    select id, seq, (date_part('epoch', received_at) * 1000)::bigint as "receivedAtMs",
           category, action, metadata, is_last as "isLast"
      from (select run.*, lead(true) over listed is null as is_last,
                   sum(coalesce(octet_length(metadata), 0)) over (listed rows unbounded preceding)
                     - coalesce(octet_length(metadata), 0) as bytes_before
              from (select id, seq, received_at, category, action, metadata from event
                     where workspace_id = ${workspaceId} and seq > ${afterSeq} and seq <= ${toSeq}
                     order by seq
                     limit ${limit}) as run
            window listed as (order by seq)) as measured
     where bytes_before < ${bytesMax}
     order by seq`.execute(db)
  const last = rows.at(-1)
  const isWhole = rows.length < limit && last?.isLast !== false
  const events = rows.map(({ isLast: _isLast, ...event }) => event)
  return { events, reachedSeq: isWhole || !last ? toSeq : last.seq }
}

export async function listKnownTypes(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<KnownType[]> {
  const { rows } = await sql<KnownType>`
    select type_no as "typeNo", category, action, events, key_count as "keyCount"
      from event_type where workspace_id = ${workspaceId}`.execute(db)
  return rows
}

export async function listKnownKeys(
  db: Queryable,
  workspaceId: WorkspaceId,
  typeNos: readonly number[],
): Promise<KnownKey[]> {
  const { rows } = await sql<KnownKey>`
    select type_no as "typeNo", path, json_type as "jsonType"
      from event_type_key
     where workspace_id = ${workspaceId} and type_no = any (${typeNos}::int[])`.execute(db)
  return rows
}

export async function writeTypes(
  trx: Queryable,
  workspaceId: WorkspaceId,
  types: readonly TypeUpdate[],
): Promise<void> {
  await sql`
    ${KEEP_PLAN}
    insert into event_type (workspace_id, type_no, category, action, events, first_seq, first_seen_at,
                            last_seq, last_seen_at, key_count, is_truncated, drifted_at)
    select ${workspaceId}, type_no, category, action, events, first_seq, to_timestamp(first_ms / 1000.0),
           last_seq, to_timestamp(last_ms / 1000.0), key_count, is_truncated,
           to_timestamp(drifted_ms / 1000.0)
      from unnest(${types.map(({ typeNo }) => typeNo)}::int[],
                  ${types.map(({ category }) => category)}::text[],
                  ${types.map(({ action }) => action)}::text[],
                  ${types.map(({ events }) => events)}::bigint[],
                  ${types.map(({ firstSeq }) => firstSeq)}::bigint[],
                  ${types.map(({ firstSeenAtMs }) => firstSeenAtMs)}::bigint[],
                  ${types.map(({ lastSeq }) => lastSeq)}::bigint[],
                  ${types.map(({ lastSeenAtMs }) => lastSeenAtMs)}::bigint[],
                  ${types.map(({ keyCount }) => keyCount)}::int[],
                  ${types.map(({ isTruncated }) => isTruncated)}::boolean[],
                  ${types.map(({ driftedAtMs }) => driftedAtMs)}::bigint[])
             as t (type_no, category, action, events, first_seq, first_ms, last_seq, last_ms,
                   key_count, is_truncated, drifted_ms)
    on conflict (workspace_id, type_no) do update
      set events = event_type.events + excluded.events,
          last_seq = excluded.last_seq,
          last_seen_at = excluded.last_seen_at,
          key_count = excluded.key_count,
          is_truncated = event_type.is_truncated or excluded.is_truncated,
          drifted_at = coalesce(excluded.drifted_at, event_type.drifted_at)`.execute(trx)
}

export async function writeKeys(
  trx: Queryable,
  workspaceId: WorkspaceId,
  keys: readonly KeyUpdate[],
): Promise<void> {
  await sql`
    ${KEEP_PLAN}
    insert into event_type_key (workspace_id, type_no, path, json_type, events, first_seq, first_seen_at,
                                first_event_id, last_seen_at, is_drift)
    select ${workspaceId}, type_no, path, json_type, events, first_seq, to_timestamp(first_ms / 1000.0),
           first_event_id, to_timestamp(last_ms / 1000.0), is_drift
      from unnest(${keys.map(({ typeNo }) => typeNo)}::int[],
                  ${keys.map(({ path }) => path)}::text[],
                  ${keys.map(({ jsonType }) => jsonType)}::text[],
                  ${keys.map(({ events }) => events)}::bigint[],
                  ${keys.map(({ firstSeq }) => firstSeq)}::bigint[],
                  ${keys.map(({ firstSeenAtMs }) => firstSeenAtMs)}::bigint[],
                  ${keys.map(({ firstEventId }) => firstEventId)}::uuid[],
                  ${keys.map(({ lastSeenAtMs }) => lastSeenAtMs)}::bigint[],
                  ${keys.map(({ isDrift }) => isDrift)}::boolean[])
             as k (type_no, path, json_type, events, first_seq, first_ms, first_event_id, last_ms, is_drift)
    on conflict (workspace_id, type_no, path, json_type) do update
      set events = event_type_key.events + excluded.events,
          last_seen_at = greatest(event_type_key.last_seen_at, excluded.last_seen_at)`.execute(trx)
}

/**
 * Workspaces with events that aren't counted: at least `eventsMin`, or any if they were last counted `waitMs`
 * ago. Lists one workspace of each company, the one that has waited longest, so that companies take turns.
 */
export async function listUnlearned(
  db: Queryable,
  {
    eventsMin,
    waitMs,
    except = [],
    limit,
  }: { eventsMin: number; waitMs: number; except?: readonly WorkspaceId[]; limit: number },
): Promise<{ workspaceId: WorkspaceId; companyId: CompanyId }[]> {
  const { rows } = await sql<{ workspaceId: string; companyId: string }>`
    ${KEEP_PLAN}
    select id as "workspaceId", company_id as "companyId"
      from (select distinct on (w.company_id) w.id, w.company_id, t.advanced_at
              from chain_head h
              join workspace w on w.id = h.workspace_id
              left join event_type_watermark t on t.workspace_id = h.workspace_id
             where h.seq > coalesce(t.seen_seq, 0) and w.id <> all (${except}::uuid[])
               and (t.workspace_id is null
                    or h.seq - t.seen_seq >= ${eventsMin}
                    or t.advanced_at <= now() - ${waitMs} * interval '1 millisecond')
             order by w.company_id, t.advanced_at nulls first) as behind
     order by advanced_at nulls first
     limit ${limit}`.execute(db)
  return rows.map(({ workspaceId, companyId }) => ({
    workspaceId: assertId(workspaceId),
    companyId: assertId(companyId),
  }))
}
