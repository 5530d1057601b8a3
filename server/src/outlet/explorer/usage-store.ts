import { sql } from 'kysely'
import { idFloor } from '../../ledger/event-store.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { MINUTE_MS } from '../../platform/time/time-units.ts'

/** What these workspaces received on one day, in UTC. */
type UsageDay = {
  day: string
  events: number
  bytes: number
  /** The usage of each workspace, as elements of a JSON array. Reading as many rows would block the main thread. */
  json: string
}

/**
 * Events and bytes per day of these workspaces. A worker counts days with a delay, so this adds the events
 * that it hasn't counted yet. One statement reads both, so that no event is missed or counted twice.
 */
export async function listUsageDays(
  db: Queryable,
  { workspaceIds, from, to }: { workspaceIds: readonly WorkspaceId[]; from: Date; to: Date },
): Promise<UsageDay[]> {
  const { rows } = await sql<UsageDay>`
    with wanted as (
      select w.id as workspace_id, coalesce(h.day_seq, 0) as day_seq
        from unnest(${workspaceIds}::uuid[]) as w (id)
        left join rollup_head h on h.workspace_id = w.id
    ), tail as (
      select w.workspace_id, t.day, t.events, t.bytes
        from wanted w
       cross join lateral (
         select (e.received_at at time zone 'UTC')::date as day, count(*) as events,
                sum(octet_length(e.category) + octet_length(e.action)
                    + coalesce(octet_length(e.actor), 0) + coalesce(octet_length(e.resource), 0)
                    + coalesce(octet_length(e.metadata), 0))::bigint as bytes
           from event e
          where e.workspace_id = w.workspace_id and e.seq > w.day_seq
          group by 1) as t
    ), counted as (
      select d.workspace_id, d.day, d.events, d.bytes
        from event_day d
       where d.workspace_id = any (${workspaceIds}::uuid[])
         and d.day >= (${from}::timestamptz at time zone 'UTC')::date
    ), added as (
      select to_char(day, 'YYYY-MM-DD') as day, workspace_id as "workspaceId",
             sum(events)::bigint as events, sum(bytes)::bigint as bytes
        from (select * from counted union all select * from tail) as days
       where day >= (${from}::timestamptz at time zone 'UTC')::date
         and day < (${to}::timestamptz at time zone 'UTC')::date
       group by 1, 2
    )
    select a.day, sum(a.events)::bigint as events, sum(a.bytes)::bigint as bytes,
           string_agg(row_to_json(a)::text, ',' order by a."workspaceId") as json
      from added a
     group by a.day
     order by a.day`.execute(db)
  return rows
}

/**
 * Counts the events received in the last minute, whatever their timestamps, which clients choose. An
 * exponential search from the end of each chain finds the first event of that minute, and its seq gives the
 * count. So it reads a few rows, however many events the minute has. The ids prune partitions. They can be
 * ahead after a clock was set back, so `received_at` decides.
 */
export async function countLastMinute(
  db: Queryable,
  { workspaceIds, now }: { workspaceIds: readonly WorkspaceId[]; now: Date },
): Promise<number> {
  const sinceMs = now.getTime() - MINUTE_MS
  const fromId = idFloor(sinceMs)
  // Not `exists`: the planner could turn that into a hash of every event since then.
  const { rows } = await sql<{ events: number }>`
    with recursive search as (
      select h.workspace_id, h.seq as head_seq, 0::bigint as low, h.seq + 1 as high, 1::bigint as step
        from unnest(${workspaceIds}::uuid[]) as w (id)
        join chain_head h on h.workspace_id = w.id
       where h.last_id >= ${fromId}::uuid
      union all
      select s.workspace_id, s.head_seq, case when p.is_recent then s.low else m.seq end,
             case when p.is_recent then m.seq else s.high end, s.step * 2
        from search s
       cross join lateral (select greatest(s.high - s.step, (s.low + s.high) / 2) as seq) as m
       cross join lateral (
         select (
           select true from event e
            where e.workspace_id = s.workspace_id and e.seq = m.seq
              and e.id >= ${fromId}::uuid and e.received_at >= ${new Date(sinceMs)}
            limit 1) is not null as is_recent
         offset 0) as p
       where s.high - s.low > 1
    )
    select coalesce(sum(head_seq - high + 1), 0)::bigint as events
      from search
     where high - low = 1`.execute(db)
  return rows[0]?.events ?? 0
}
