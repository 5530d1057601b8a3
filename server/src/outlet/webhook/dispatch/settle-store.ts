import { type RawBuilder, sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../../platform/id.ts'
import { KEEP_PLAN } from '../../../platform/pg/kept-plan.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { WebhookId } from '../delivery/delivery.ts'
import { UNCHANGED } from './delivery-queue-store.ts'
import type { Settlement } from './settlement.ts'

/** A webhook's failures after its attempts were counted. */
export type SettledWebhook = {
  workspaceId: WorkspaceId
  webhookId: WebhookId
  failureCount: number
  failingSince: Date | null
}

type SettledRow = Omit<SettledWebhook, 'workspaceId' | 'webhookId'> & {
  workspaceId: string
  webhookId: string
}

/** After this many failures in a row, a webhook gets single probes with pauses. */
export const PROBE_AFTER_FAILURES = 10
/** The pause after the tenth failure in a row. Each failed probe doubles it, up to the maximum. */
const PAUSE_MIN = sql`interval '1 second'`
const PAUSE_MAX = sql`interval '60 seconds'`
const ATTEMPTS_KEPT_MAX = 20

/**
 * Stores the results of many attempts in one statement and counts them on their webhooks. If another sender
 * has leased the delivery meanwhile, the result doesn't change the delivery, which is sent again.
 *
 * The plan must not depend on statistics, because a plan cached for an empty table can stay in use while the
 * table grows. `held` filters by the columns of both unique keys, so either index finds a single row.
 */
export async function settleAttempts(
  db: Queryable,
  settlements: readonly Settlement[],
): Promise<SettledWebhook[]> {
  const counts = countByWebhook(settlements)
  const { rows } = await sql<SettledRow>`
    ${KEEP_PLAN}
    with held as materialized (
      ${lockLeased(settlements)}
    ), settled as (
      insert into webhook_delivery as d
             (${UNCHANGED}, status, attempt, due_at, lease, response_status, duration_ms, error_class,
             failure_reason, attempts, updated_at)
      select ${UNCHANGED}, status, attempt, due_at, lease, response_status, duration_ms, error_class,
             case when status = 'FAILED' then record ->> 'message' end, jsonb_build_array(record),
             ended_at
        from held
      on conflict (workspace_id, id) do update
         set status = excluded.status, due_at = excluded.due_at, lease = null,
             updated_at = excluded.updated_at, response_status = excluded.response_status,
             duration_ms = excluded.duration_ms, error_class = excluded.error_class,
             failure_reason = excluded.failure_reason,
             attempts = case when jsonb_array_length(d.attempts) >= ${sql.lit(ATTEMPTS_KEPT_MAX)}
                             then d.attempts - 0 else d.attempts end || excluded.attempts
       where d.lease = excluded.lease and d.status = 'SENDING'
      returning d.workspace_id, d.webhook_id, d.status
    ), ended as (
      select workspace_id, webhook_id, count(*) as count
        from settled
       where status in ('SUCCEEDED', 'FAILED')
       group by workspace_id, webhook_id
    )
    update webhook w
       set open_count = w.open_count - coalesce(e.count, 0),
           failure_count = n.failures + case when n.success_at is null then w.failure_count else 0 end,
           failing_since = case when n.success_at is null then coalesce(w.failing_since, n.failing_since)
                                else n.failing_since end,
           resting_until = case
             when n.failures + case when n.success_at is null then w.failure_count else 0 end
                  < ${sql.lit(PROBE_AFTER_FAILURES)} then null
             when n.failure_at is null then w.resting_until
             when w.resting_until is null or n.success_at is not null then n.failure_at + ${PAUSE_MIN}
             -- The attempt started before the pause, so it is not a probe.
             when n.failure_at < w.resting_until then w.resting_until
             else n.failure_at + greatest(${PAUSE_MIN},
                                   least(${PAUSE_MAX}, 2 * (w.resting_until - w.last_failure_at)))
           end,
           last_success_at = greatest(w.last_success_at, n.success_at),
           last_failure_at = greatest(w.last_failure_at, n.failure_at)
      from unnest(${counts.map((c) => c.workspaceId)}::uuid[],
                  ${counts.map((c) => c.webhookId)}::uuid[],
                  ${counts.map((c) => c.failures)}::bigint[],
                  ${counts.map((c) => c.failingSince)}::timestamptz[],
                  ${counts.map((c) => c.successAt)}::timestamptz[],
                  ${counts.map((c) => c.failureAt)}::timestamptz[])
        as n (workspace_id, id, failures, failing_since, success_at, failure_at)
      left join ended e on e.workspace_id = n.workspace_id and e.webhook_id = n.id
     where w.workspace_id = n.workspace_id and w.id = n.id
    returning w.workspace_id as "workspaceId", w.id as "webhookId",
              w.failure_count as "failureCount", w.failing_since as "failingSince"`.execute(db)
  return rows.map(toSettledWebhook)
}

/** The settlements whose lease is still valid. Locks the rows of their deliveries. */
function lockLeased(settlements: readonly Settlement[]): RawBuilder<unknown> {
  return sql`
    select s.*, d.event_id, d.attempt, d.created_at
      from unnest(${settlements.map((s) => s.workspaceId)}::uuid[],
                  ${settlements.map((s) => s.webhookId)}::uuid[],
                  ${settlements.map((s) => s.deliveryId)}::uuid[],
                  ${settlements.map((s) => s.sequence)}::bigint[],
                  ${settlements.map((s) => s.lease)}::uuid[],
                  ${settlements.map((s) => s.status)}::text[],
                  ${settlements.map((s) => s.dueAt)}::timestamptz[],
                  ${settlements.map((s) => s.endedAt)}::timestamptz[],
                  ${settlements.map((s) => s.record.responseStatus)}::integer[],
                  ${settlements.map((s) => s.record.durationMs)}::integer[],
                  ${settlements.map((s) => s.record.errorClass)}::text[],
                  ${settlements.map((s) => JSON.stringify(s.record))}::jsonb[])
        as s (workspace_id, webhook_id, id, sequence, lease, status, due_at, ended_at,
              response_status, duration_ms, error_class, record)
     cross join lateral (
       select event_id, attempt, created_at
         from webhook_delivery
        where workspace_id = s.workspace_id and webhook_id = s.webhook_id
          and sequence = s.sequence and id = s.id and lease = s.lease
        limit 1
          for update) as d`
}

function toSettledWebhook(row: SettledRow): SettledWebhook {
  return {
    ...row,
    workspaceId: assertId(row.workspaceId),
    webhookId: assertId(row.webhookId),
  }
}

type WebhookCount = {
  workspaceId: WorkspaceId
  webhookId: WebhookId
  /** Failures since the last success in this batch. */
  failures: number
  /** The first of these failures. */
  failingSince: Date | null
  successAt: Date | null
  failureAt: Date | null
}

/** Counts in the order in which the attempts ended, because failures count from the last success. */
export function countByWebhook(settlements: readonly Settlement[]): WebhookCount[] {
  const counts = new Map<WebhookId, WebhookCount>()
  for (const settlement of settlements.toSorted((a, b) => +a.endedAt - +b.endedAt)) {
    const { workspaceId, webhookId, endedAt } = settlement
    const count = counts.get(webhookId) ?? {
      workspaceId,
      webhookId,
      failures: 0,
      failingSince: null,
      successAt: null,
      failureAt: null,
    }
    counts.set(webhookId, count)
    // Nothing was sent, so this is not a failure of the receiver.
    if (settlement.status === 'FAILED' && settlement.record.errorClass === null) continue
    if (settlement.status === 'SUCCEEDED') {
      Object.assign(count, { failures: 0, failingSince: null, successAt: endedAt })
    } else {
      count.failures += 1
      count.failingSince ??= endedAt
      count.failureAt = endedAt
    }
  }
  return [...counts.values()].toSorted((a, b) => (a.webhookId < b.webhookId ? -1 : 1))
}
