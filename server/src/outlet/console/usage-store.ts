import { sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'

/** What a workspace took in on a day of receipt, in UTC. */
export type UsageDay = { workspaceId: WorkspaceId; day: string; events: number; bytes: number }

type UsageRow = Omit<UsageDay, 'workspaceId'> & { workspaceId: string }

/**
 * Events and bytes by day, of these workspaces. Days are counted after the fact, so what is not counted
 * yet is added here; both in one statement, so that nothing is in neither or in both.
 */
export async function listUsageDays(
  db: Queryable,
  { workspaceIds, from, to }: { workspaceIds: readonly WorkspaceId[]; from: Date; to: Date },
): Promise<UsageDay[]> {
  const { rows } = await sql<UsageRow>`
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
    )
    select workspace_id as "workspaceId", to_char(day, 'YYYY-MM-DD') as day,
           sum(events)::bigint as events, sum(bytes)::bigint as bytes
      from (select * from counted union all select * from tail) as days
     where day >= (${from}::timestamptz at time zone 'UTC')::date
       and day < (${to}::timestamptz at time zone 'UTC')::date
     group by 1, 2
     order by 2, 1`.execute(db)
  return rows.map((row) => ({ ...row, workspaceId: assertId(row.workspaceId) }))
}

/** Events of the last minute, by their own time and by that of receipt: late ones are no present load. */
export async function countLastMinute(
  db: Queryable,
  { workspaceIds, now }: { workspaceIds: readonly WorkspaceId[]; now: Date },
): Promise<number> {
  const since = new Date(now.getTime() - 60_000)
  const { rows } = await sql<{ events: number }>`
    select coalesce(sum(t.events), 0)::bigint as events
      from unnest(${workspaceIds}::uuid[]) as w (id)
     cross join lateral (
       select count(*) as events from event e
        where e.workspace_id = w.id and e.ts >= ${since} and e.received_at >= ${since}) as t`.execute(
    db,
  )
  return rows[0]?.events ?? 0
}
