import { sql } from 'kysely'
import { hiddenFromPlanner } from '../../platform/pg/hidden-value.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { HOUR_MS } from '../../platform/time/time-units.ts'
import type { WebhookId } from './delivery/delivery.ts'
import { type DeliveryCounts, stateOf, type HealthState } from './webhook-state.ts'

const HEALTH_HOURS = 24
/** At most this many of a webhook's newest deliveries are read, however busy it is. */
const DELIVERIES_MAX = 5_000

/** The deliveries of a webhook that were created in one hour. */
type HealthHour = {
  startsAt: Date
  succeeded: number
  failed: number
  waiting: number
}

type WebhookHealthReport = {
  state: HealthState
  hours: HealthHour[]
  lastHour: DeliveryCounts
  /** Covers the same period as the hours. */
  lastDay: DeliveryCounts
  /** When the oldest delivery that should have been sent by now was due. */
  overdueSince: Date | null
  /** The rate among the newest deliveries within these hours. Null if none of them has ended. */
  successRate: number | null
  medianMs: number | null
  p95Ms: number | null
  /** Deliveries that are not final. */
  open: number
  /** True if the hours may have more deliveries than were read. */
  isCut: boolean
}

type HealthRow = {
  hour: Date | null
  succeeded: number
  failed: number
  waiting: number
  retrying: number
  hourSucceeded: number
  hourFailed: number
  hourRetrying: number
  medianMs: number | null
  p95Ms: number | null
}

/** A webhook's results of the last 24 hours, by hour, from its newest deliveries. */
export async function readWebhookHealth(
  db: Queryable,
  {
    workspaceId,
    webhookId,
    nowMs,
  }: { workspaceId: WorkspaceId; webhookId: WebhookId; nowMs: number },
): Promise<WebhookHealthReport> {
  const firstHourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS - (HEALTH_HOURS - 1) * HOUR_MS
  const { rows } = await sql<HealthRow>`
    with newest as (
      select status, duration_ms, created_at, created_at >= ${new Date(nowMs - HOUR_MS)} as is_last_hour,
             status not in ('SUCCEEDED', 'FAILED') and error_class is not null as is_retrying
        from webhook_delivery
       where workspace_id = ${hiddenFromPlanner(workspaceId)} and webhook_id = ${webhookId}
       order by sequence desc
       limit ${DELIVERIES_MAX}
    )
    select date_trunc('hour', created_at, 'UTC') as hour,
           count(*) filter (where status = 'SUCCEEDED') as succeeded,
           count(*) filter (where status = 'FAILED') as failed,
           count(*) filter (where status not in ('SUCCEEDED', 'FAILED')) as waiting,
           count(*) filter (where is_retrying) as retrying,
           count(*) filter (where is_last_hour and status = 'SUCCEEDED') as "hourSucceeded",
           count(*) filter (where is_last_hour and status = 'FAILED') as "hourFailed",
           count(*) filter (where is_last_hour and is_retrying) as "hourRetrying",
           percentile_disc(0.5) within group (order by duration_ms) as "medianMs",
           percentile_disc(0.95) within group (order by duration_ms) as "p95Ms"
      from newest
     where created_at >= ${new Date(firstHourMs)}
     group by grouping sets ((date_trunc('hour', created_at, 'UTC')), ())`.execute(db)
  const { open, overdueSince } = await readBacklog(db, { workspaceId, webhookId, nowMs })
  const all = rows.find(({ hour }) => hour === null)
  const ended = (all?.succeeded ?? 0) + (all?.failed ?? 0)
  const lastHour = {
    succeeded: all?.hourSucceeded ?? 0,
    failed: all?.hourFailed ?? 0,
    retrying: all?.hourRetrying ?? 0,
  }
  const lastDay = {
    succeeded: all?.succeeded ?? 0,
    failed: all?.failed ?? 0,
    retrying: all?.retrying ?? 0,
  }
  const overdueMs = overdueSince === null ? 0 : nowMs - overdueSince.getTime()
  return {
    state: stateOf({ lastHour, lastDay, overdueMs }),
    lastHour,
    lastDay,
    overdueSince,
    hours: Array.from({ length: HEALTH_HOURS }, (_, nth) =>
      hourOf(rows, new Date(firstHourMs + nth * HOUR_MS)),
    ),
    successRate: ended === 0 ? null : (all?.succeeded ?? 0) / ended,
    medianMs: all?.medianMs ?? null,
    p95Ms: all?.p95Ms ?? null,
    open,
    isCut: ended + (all?.waiting ?? 0) === DELIVERIES_MAX,
  }
}

type Backlog = Pick<WebhookHealthReport, 'open' | 'overdueSince'>

async function readBacklog(
  db: Queryable,
  {
    workspaceId,
    webhookId,
    nowMs,
  }: { workspaceId: WorkspaceId; webhookId: WebhookId; nowMs: number },
): Promise<Backlog> {
  const { rows } = await sql<Backlog>`
    select w.open_count as open,
           (select d.due_at
              from webhook_delivery d
             where d.workspace_id = w.workspace_id and d.webhook_id = w.id
               and d.status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED')
               and d.due_at <= ${new Date(nowMs)}
             order by d.due_at
             limit 1) as "overdueSince"
      from webhook w
     where w.workspace_id = ${hiddenFromPlanner(workspaceId)} and w.id = ${webhookId}`.execute(db)
  return rows[0] ?? { open: 0, overdueSince: null }
}

function hourOf(rows: readonly HealthRow[], startsAt: Date): HealthHour {
  const row = rows.find(({ hour }) => hour?.getTime() === startsAt.getTime())
  return {
    startsAt,
    succeeded: row?.succeeded ?? 0,
    failed: row?.failed ?? 0,
    waiting: row?.waiting ?? 0,
  }
}
