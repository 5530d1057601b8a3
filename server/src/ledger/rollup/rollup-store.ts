import { sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../platform/id.ts'
import { KEEP_PLAN } from '../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { isPlan, type Plan } from '../../tenancy/plans.ts'
import { insertBlocks } from './value-block-store.ts'

/** The bucket lengths of the roll-up. The longer one keeps the number of rows for a month small. */
export const ROLLUP_GRAINS_S = [900, 21_600] as const

/**
 * The fields whose distinct values are listed. A listed value takes about 200 bytes, and the list changes
 * with every event. A field with more than `VALUES_PER_FIELD_MAX` values is searched event by event instead.
 */
export const VALUE_FIELDS = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
  'projectId',
] as const
export type ValueField = (typeof VALUE_FIELDS)[number]
const VALUES_PER_FIELD_MAX = 100_000

/**
 * The roll-up counts the events above `floorSeq`, up to and including `seenSeq`; the usage, up to `daySeq`.
 */
export type RollupHead = { floorSeq: number; seenSeq: number; daySeq: number }

/** A run of a chain: above `afterSeq`, up to and including `toSeq`. */
type Run = { workspaceId: WorkspaceId; afterSeq: number; toSeq: number }

/** Starts a roll-up right before the oldest event in the table. */
export async function ensureRollupHead(db: Queryable, workspaceId: WorkspaceId): Promise<void> {
  await sql`
    insert into rollup_head (workspace_id, floor_seq, seen_seq, day_seq, advanced_at)
    select ${workspaceId}, b.seq, b.seq, b.seq, now()
      from (select coalesce(
              (select min(seq) - 1 from event where workspace_id = ${workspaceId}),
              (select seq from chain_head where workspace_id = ${workspaceId}),
              0) as seq) as b
    on conflict do nothing`.execute(db)
}

/**
 * Locks the roll-up, which every change to it requires. Returns null if another transaction has the lock or
 * there is no roll-up.
 */
export async function tryLockRollup(
  trx: Queryable,
  workspaceId: WorkspaceId,
): Promise<RollupHead | null> {
  const { rows } = await sql<RollupHead>`
    select floor_seq as "floorSeq", seen_seq as "seenSeq", day_seq as "daySeq"
      from rollup_head where workspace_id = ${workspaceId} for update skip locked`.execute(trx)
  return rows[0] ?? null
}

/** Like `tryLockRollup`, but waits for the lock. */
export async function lockRollup(
  trx: Queryable,
  workspaceId: WorkspaceId,
): Promise<RollupHead | null> {
  const { rows } = await sql<RollupHead>`
    select floor_seq as "floorSeq", seen_seq as "seenSeq", day_seq as "daySeq"
      from rollup_head where workspace_id = ${workspaceId} for update`.execute(trx)
  return rows[0] ?? null
}

export async function writeRollupHead(
  trx: Queryable,
  workspaceId: WorkspaceId,
  { floorSeq, seenSeq, daySeq }: RollupHead,
): Promise<void> {
  await sql`
    update rollup_head
       set floor_seq = ${floorSeq}, seen_seq = ${seenSeq}, day_seq = ${daySeq}, advanced_at = now()
     where workspace_id = ${workspaceId}`.execute(trx)
}

/** The size of an event's texts as they were sent. */
const TEXT_BYTES = sql`
  octet_length(category) + octet_length(action) + coalesce(octet_length(actor), 0)
    + coalesce(octet_length(resource), 0) + coalesce(octet_length(metadata), 0)`

/** Counts a run per bucket, and per field and value. */
const runParts = ({ workspaceId, afterSeq, toSeq }: Run) => sql`
  run as materialized (
    select seq, ts, received_at, project_id, category, action, actor_id, actor_email,
           resource_type, resource_id,
           ${TEXT_BYTES} as bytes
      from event
     where workspace_id = ${workspaceId} and seq > ${afterSeq} and seq <= ${toSeq}
  ), quarter as materialized (
    select date_bin('15 minutes', ts, 'epoch') as bucket, category, action, count(*) as events
      from run group by 1, 2, 3
  ), cell as materialized (
    select 900 as grain_s, bucket, category, action, events from quarter
    union all
    select 21600, date_bin('6 hours', bucket, 'epoch'), category, action, sum(events)::bigint
      from quarter group by 2, 3, 4
  ), found as materialized (
    select 'category' as field, category as value, count(*) as events from run group by 2
    union all select 'action', action, count(*) from run group by 2
    union all select 'actorId', actor_id, count(*) from run where actor_id is not null group by 2
    union all select 'actorEmail', actor_email, count(*) from run where actor_email is not null group by 2
    union all select 'resourceType', resource_type, count(*) from run where resource_type is not null group by 2
    union all select 'resourceId', resource_id, count(*) from run where resource_id is not null group by 2
    union all select 'projectId', project_id::text collate "C", count(*) from run where project_id is not null group by 2
  )`

/** Adds a run to the usage only. */
export async function countDays(
  trx: Queryable,
  { workspaceId, afterSeq, toSeq }: Run,
): Promise<void> {
  await sql`
    insert into event_day (workspace_id, day, events, bytes)
    select ${workspaceId}, (received_at at time zone 'UTC')::date, count(*), sum(${TEXT_BYTES})
      from event
     where workspace_id = ${workspaceId} and seq > ${afterSeq} and seq <= ${toSeq}
     group by 2
    on conflict (workspace_id, day) do update
      set events = event_day.events + excluded.events, bytes = event_day.bytes + excluded.bytes`.execute(
    trx,
  )
}

/**
 * Adds a run. Only events above `daySeq` are added to the usage. With `isMarking`, values that reach
 * the threshold become frequent; in a new field, all do. A closed field accepts no new values, and its existing ones are
 * looked up one by one: in a workspace without statistics, the planner could reverse a join and
 * compare every value with every other.
 */
export async function addToRollup(
  trx: Queryable,
  run: Run & Pick<RollupHead, 'floorSeq' | 'daySeq'>,
  { isMarking }: { isMarking: boolean },
): Promise<void> {
  const { workspaceId, toSeq, floorSeq, daySeq } = run
  await sql`
    ${KEEP_PLAN}
    with ${runParts(run)}, closed as materialized (
      select field from event_field
       where workspace_id = ${workspaceId}
         and (value_count >= ${VALUES_PER_FIELD_MAX} or dropped_seq > ${floorSeq})
    ), bound as materialized (
      select field, frequent_from from event_field
       where workspace_id = ${workspaceId} and ${isMarking}
    ), cells as (
      insert into event_rollup (workspace_id, grain_s, bucket, category, action, events)
      select ${workspaceId}, grain_s, bucket, category, action, events from cell
      on conflict (workspace_id, grain_s, bucket, category, action)
        do update set events = event_rollup.events + excluded.events
    ), days as (
      insert into event_day (workspace_id, day, events, bytes)
      select ${workspaceId}, (received_at at time zone 'UTC')::date, count(*), sum(bytes)
        from run where seq > ${daySeq} group by 2
      on conflict (workspace_id, day) do update
        set events = event_day.events + excluded.events, bytes = event_day.bytes + excluded.bytes
    ), known as materialized (
      select f.field, f.value, f.events
        from found f
       cross join lateral (
         select from event_value
          where workspace_id = ${workspaceId} and field = f.field and value = f.value
         offset 0) as v
       where f.field in (select field from closed)
    ), added as (
      insert into event_value (workspace_id, field, value, events, is_frequent)
      select ${workspaceId}, field, value, events, coalesce(events >= frequent_from, ${isMarking})
        from (select field, value, events from found where field not in (select field from closed)
              union all select field, value, events from known) as counted
        left join bound using (field)
      on conflict (workspace_id, field, value)
        do update set events = event_value.events + excluded.events,
          is_frequent = event_value.is_frequent or coalesce(event_value.events + excluded.events >=
            (select frequent_from from bound where bound.field = excluded.field), false)
      returning field, value, (xmax = 0) as is_new
    ), blocks as (
      ${insertBlocks(workspaceId, sql`select field, value from added where is_new`)}
    ), dropped as (
      select field from found where field in (select field from closed) group by field
      having count(*) > (select count(*) from known k where k.field = found.field)
    )
    insert into event_field (workspace_id, field, value_count, dropped_seq)
    select ${workspaceId}, f.field,
           (select count(*) from added a where a.field = f.field and a.is_new),
           case when exists (select from dropped d where d.field = f.field) then ${toSeq}::bigint else 0 end
      from (select distinct field from found) as f
    on conflict (workspace_id, field) do update
      set value_count = event_field.value_count + excluded.value_count,
          dropped_seq = greatest(event_field.dropped_seq, excluded.dropped_seq)`.execute(trx)
}

/**
 * Subtracts a run while its events are still in the table. The usage stays.
 *
 * As in `addToRollup`, nothing depends on statistics: rows are looked up one by one, deleted by physical
 * address, and decremented by an upsert, which finds each row by its key. The lock on the roll-up prevents
 * concurrent changes to these rows.
 */
export async function removeFromRollup(trx: Queryable, run: Run): Promise<void> {
  const { workspaceId } = run
  await sql`
    ${KEEP_PLAN}
    with ${runParts(run)}, cell_row as materialized (
      select c.grain_s, c.bucket, c.category, c.action, c.events, r.address, r.events as counted
        from cell c
       cross join lateral (
         select ctid as address, events from event_rollup
          where workspace_id = ${workspaceId} and grain_s = c.grain_s and bucket = c.bucket
            and category = c.category and action = c.action
         offset 0) as r
    ), value_row as materialized (
      select f.field, f.value, f.events, v.address, v.events as counted, v.is_frequent
        from found f
       cross join lateral (
         select ctid as address, events, is_frequent from event_value
          where workspace_id = ${workspaceId} and field = f.field and value = f.value
         offset 0) as v
    ), cells_gone as (
      delete from event_rollup
       where ctid = any (array(select address from cell_row where counted <= events))
    ), cells as (
      insert into event_rollup (workspace_id, grain_s, bucket, category, action, events)
      select ${workspaceId}, grain_s, bucket, category, action, events
        from cell_row where counted > events
      on conflict (workspace_id, grain_s, bucket, category, action)
        do update set events = event_rollup.events - excluded.events
    ), lowered as (
      insert into event_value (workspace_id, field, value, events, is_frequent)
      select ${workspaceId}, field, value, events, is_frequent
        from value_row where counted > events
      on conflict (workspace_id, field, value)
        do update set events = event_value.events - excluded.events
    ), gone as (
      delete from event_value
       where ctid = any (array(select address from value_row where counted <= events))
      returning field
    )
    update event_field e set value_count = e.value_count - g.values
      from (select field, count(*) as values from gone group by field) as g
     where e.workspace_id = ${workspaceId} and e.field = g.field`.execute(trx)
}

/** Deletes everything but the usage. */
export async function clearRollup(trx: Queryable, workspaceId: WorkspaceId): Promise<void> {
  await sql`delete from event_rollup where workspace_id = ${workspaceId}`.execute(trx)
  await sql`delete from event_value where workspace_id = ${workspaceId}`.execute(trx)
  await sql`delete from event_value_block where workspace_id = ${workspaceId}`.execute(trx)
  await sql`delete from event_field where workspace_id = ${workspaceId}`.execute(trx)
}

/** The seq before the oldest event in the table, or the end of the chain if there is none. */
export async function readFirstSeq(trx: Queryable, workspaceId: WorkspaceId): Promise<number> {
  const { rows } = await sql<{ seq: number }>`
    select coalesce(
      (select min(seq) - 1 from event where workspace_id = ${workspaceId}),
      (select seq from chain_head where workspace_id = ${workspaceId}),
      0) as seq`.execute(trx)
  return rows[0]?.seq ?? 0
}

/** A roll-up is behind if at least `eventsMin` events are uncounted and its last update is `waitMs` old. */
type RollupThresholds = readonly { eventsMin: number; waitMs: number }[]

/** Chains whose roll-up is missing or behind, the ones with the most uncounted events first. */
export async function listStaleRollups(
  db: Queryable,
  {
    thresholds,
    except,
    limit,
  }: { thresholds: RollupThresholds; except: readonly WorkspaceId[]; limit: number },
): Promise<WorkspaceId[]> {
  const { rows } = await sql<{ workspaceId: string }>`
    ${KEEP_PLAN}
    select h.workspace_id as "workspaceId"
      from chain_head h left join rollup_head r on r.workspace_id = h.workspace_id
     where h.seq > coalesce(r.seen_seq, 0)
       and h.workspace_id <> all (${except}::uuid[])
       and (r.workspace_id is null or exists (
         select from unnest(${thresholds.map(({ eventsMin }) => eventsMin)}::bigint[],
                            ${thresholds.map(({ waitMs }) => waitMs)}::bigint[]) as p (events_min, wait_ms)
          where h.seq - r.seen_seq >= p.events_min
            and r.advanced_at <= now() - p.wait_ms * interval '1 millisecond'))
     order by h.seq - coalesce(r.seen_seq, 0) desc
     limit ${limit}`.execute(db)
  return rows.map(({ workspaceId }) => assertId(workspaceId))
}

/** Workspaces with a roll-up, ordered by id. */
export async function listRolledUp(
  db: Queryable,
  { after, limit }: { after: WorkspaceId | null; limit: number },
): Promise<{ workspaceId: WorkspaceId; plan: Plan }[]> {
  const { rows } = await sql<{ workspaceId: string; plan: string }>`
    select r.workspace_id as "workspaceId", c.plan
      from rollup_head r
      join workspace w on w.id = r.workspace_id
      join company c on c.id = w.company_id
     where ${after}::uuid is null or r.workspace_id > ${after}::uuid
     order by r.workspace_id
     limit ${limit}`.execute(db)
  return rows.flatMap(({ workspaceId, plan }) =>
    isPlan(plan) ? [{ workspaceId: assertId(workspaceId), plan }] : [],
  )
}
