import { sql } from 'kysely'
import { BLOCK_EVENTS } from '../../ledger/search/search-blocks.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** Every statement reads one row per workspace, webhook or company, and a bounded number of events and deliveries. */
const WEBHOOKS_PROBED_MAX = 1_000
const WORKSPACES_PROBED_MAX = 20
const EXPORTS_COUNTED_MAX = 10_000

export const WEBHOOK_GAUGE_STATES = ['healthy', 'failing', 'resting', 'disabled'] as const

type WebhookGauge = {
  state: (typeof WEBHOOK_GAUGE_STATES)[number]
  webhooks: number
  unread: number
  open: number
  lateSeconds: number
}

/** Webhooks and their backlog. The lateness is that of the oldest webhooks with open deliveries. */
export async function listWebhookGauges(db: Queryable): Promise<WebhookGauge[]> {
  const { rows } = await sql<WebhookGauge>`
    with hook as materialized (
      select w.workspace_id, w.id, w.open_count, w.has_open, w.created_at, w.status,
             case when w.status = 'DISABLED' then 'disabled'
                  when w.resting_until > now() then 'resting'
                  when w.failing_since is not null then 'failing'
                  else 'healthy' end as state,
             case when w.status = 'ENABLED' then greatest(h.seq - w.seen_seq, 0) else 0 end as unread
        from webhook w
        left join chain_head h on h.workspace_id = w.workspace_id
       where w.deleted_at is null
    ), late as materialized (
      select o.state, max(extract(epoch from now() - d.due_at)) as seconds
        from (select * from hook
               where has_open and status = 'ENABLED'
               order by created_at
               limit ${WEBHOOKS_PROBED_MAX}) as o
       cross join lateral (
         select min(due_at) as due_at from webhook_delivery
          where workspace_id = o.workspace_id and webhook_id = o.id
            and status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED')) as d
       group by o.state
    )
    select h.state, count(*) as webhooks, coalesce(sum(h.unread), 0)::bigint as unread,
           sum(h.open_count)::bigint as open,
           greatest(coalesce(max(l.seconds), 0), 0)::float8 as "lateSeconds"
      from hook h
      left join late l on l.state = h.state
     group by h.state`.execute(db)
  return rows
}

type WorkerLag = { worker: string; events: number; seconds: number }

/** Where each worker keeps how far it has read a chain. It waits until a chain has `eventsMin` new events. */
const WORKERS = [
  { worker: 'rollup', table: 'rollup_head', seq: 'seen_seq', at: 'advanced_at', eventsMin: 1 },
  {
    worker: 'event_type',
    table: 'event_type_watermark',
    seq: 'seen_seq',
    at: 'advanced_at',
    eventsMin: 1,
  },
  {
    worker: 'search',
    table: 'search_watermark',
    seq: 'seen_seq',
    at: 'advanced_at',
    eventsMin: BLOCK_EVENTS,
  },
  { worker: 'signer', table: 'checkpoint', seq: 'size', at: 'signed_at', eventsMin: 1 },
] as const

/**
 * How far the workers are behind the chains. The age is that of the event which made a chain due, and is read for
 * the chains that a worker has not touched for longest.
 */
export async function listWorkerLags(
  db: Queryable,
  { isSigning }: { isSigning: boolean },
): Promise<WorkerLag[]> {
  const workers = WORKERS.filter(({ worker }) => isSigning || worker !== 'signer')
  const { rows } = await sql<WorkerLag>`${sql.join(workers.map(lagOf), sql` union all `)}`.execute(
    db,
  )
  return rows
}

const lagOf = ({ worker, table, seq, at, eventsMin }: (typeof WORKERS)[number]) => sql`
  (with behind as materialized (
     select h.workspace_id, coalesce(w.${sql.ref(seq)}, 0) as seq,
            h.seq - coalesce(w.${sql.ref(seq)}, 0) as events, w.${sql.ref(at)} as at
       from chain_head h
       left join ${sql.table(table)} w on w.workspace_id = h.workspace_id
      where h.seq - coalesce(w.${sql.ref(seq)}, 0) >= ${eventsMin}
   ), oldest as materialized (
     select workspace_id, seq from behind order by at nulls first limit ${WORKSPACES_PROBED_MAX}
   )
   select ${worker} as worker,
          (select coalesce(sum(events), 0) from behind)::bigint as events,
          greatest((select coalesce(max(extract(epoch from now() - e.received_at)), 0)
                      from oldest o
                     cross join lateral (
                       select received_at from event
                        where workspace_id = o.workspace_id and seq = o.seq + ${eventsMin}
                       offset 0) as e), 0)::float8 as seconds)`

type StorageGauges = { databaseBytes: number; pending: number; running: number }

/** The size of the database, and how many export jobs are open. */
export async function readStorageGauges(db: Queryable): Promise<StorageGauges> {
  const countOpen = (status: string) => sql`
    (select count(*)
       from (select from export_job
              where status in ('PENDING', 'RUNNING') and status = ${status}
              limit ${EXPORTS_COUNTED_MAX}) as open)`
  const { rows } = await sql<StorageGauges>`
    select pg_database_size(current_database()) as "databaseBytes",
           ${countOpen('PENDING')} as pending, ${countOpen('RUNNING')} as running`.execute(db)
  return rows[0] ?? { databaseBytes: 0, pending: 0, running: 0 }
}

type PlanGauge = { plan: string; companies: number; bytesOfLargest: number }

/** Companies per plan, and how many bytes the company with the most has stored today. */
export async function listPlanGauges(db: Queryable): Promise<PlanGauge[]> {
  const { rows } = await sql<PlanGauge>`
    select c.plan, count(*) as companies, coalesce(max(today.bytes), 0)::bigint as "bytesOfLargest"
      from company c
      left join (
        select w.company_id, sum(d.bytes) as bytes
          from workspace w
         cross join lateral (
           select bytes from event_day
            where workspace_id = w.id and day = (now() at time zone 'UTC')::date
           offset 0) as d
         group by w.company_id) as today on today.company_id = c.id
     group by c.plan`.execute(db)
  return rows
}
