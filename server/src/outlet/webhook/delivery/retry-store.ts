import { type RawBuilder, sql } from 'kysely'
import { hiddenFromPlanner } from '../../../platform/pg/hidden-value.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { ERROR_CLASSES, type ErrorClass } from './delivery.ts'
import { eventOf } from '../dispatch/delivery-queue-store.ts'
import { OPEN_PER_WEBHOOK_MAX, resendChosen, type WebhookRef } from './delivery-store.ts'

/** The statuses that a retry of many deliveries covers. Pending ones are due already. */
export const RETRYABLE_STATUSES = ['FAILED', 'RETRY_SCHEDULED'] as const
export type RetryableStatus = (typeof RETRYABLE_STATUSES)[number]

/** At most this many deliveries of each status are counted. */
const COUNTED_MAX = OPEN_PER_WEBHOOK_MAX

/**
 * What a preview fixes, so that deliveries created or changed later are left alone. A delivery that fails
 * again during the retry is therefore not retried twice.
 */
export type RetryScope = { throughSequence: number; previewedAt: Date }

type RetryGroup = {
  status: RetryableStatus
  responseStatus: number | null
  errorClass: ErrorClass | null
  count: number
}

type RetryPreview = {
  throughSequence: number
  /** Deliveries by status and last response, the largest group first. */
  groups: RetryGroup[]
  /** True if there may be more deliveries than were counted. */
  isCut: boolean
}

/** Counts the deliveries that a retry would cover. */
export async function previewRetry(
  db: Queryable,
  { workspaceId, webhookId }: WebhookRef,
): Promise<RetryPreview> {
  const ref = { workspaceId, webhookId }
  const { rows: webhooks } = await sql<{ throughSequence: number }>`
    select last_sequence as "throughSequence"
      from webhook
     where workspace_id = ${workspaceId} and id = ${webhookId}`.execute(db)
  const groups: RetryGroup[] = []
  for (const status of RETRYABLE_STATUSES) {
    const { rows } = await sql<Omit<RetryGroup, 'status' | 'errorClass'> & { errorClass: string }>`
      select response_status as "responseStatus", error_class as "errorClass", count(*) as count
        from (select d.response_status, d.error_class
                from webhook_delivery d
               where ${retryableCondition(ref, status)}
               limit ${sql.lit(COUNTED_MAX)}) as found
       group by response_status, error_class`.execute(db)
    for (const { errorClass, ...row } of rows) {
      const known = ERROR_CLASSES.find((name) => name === errorClass) ?? null
      groups.push({ ...row, status, errorClass: known })
    }
  }
  return {
    throughSequence: webhooks[0]?.throughSequence ?? 0,
    groups: groups.toSorted((a, b) => b.count - a.count),
    isCut: RETRYABLE_STATUSES.some((status) => countOf(groups, status) >= COUNTED_MAX),
  }
}

function countOf(groups: readonly RetryGroup[], status: RetryableStatus): number {
  return groups.reduce((sum, group) => sum + (group.status === status ? group.count : 0), 0)
}

/** How many more deliveries of the webhook can be open. */
export async function readOpenRoom(
  db: Queryable,
  { workspaceId, webhookId }: WebhookRef,
): Promise<number> {
  const { rows } = await sql<{ open: number }>`
    select open_count as open
      from webhook
     where workspace_id = ${workspaceId} and id = ${webhookId}`.execute(db)
  return Math.max(0, OPEN_PER_WEBHOOK_MAX - (rows[0]?.open ?? 0))
}

export type RetryStep = {
  queued: number
  /** Deliveries that can't be sent again, because their event is no longer in the table. */
  archived: number
  /** The last sequence that was read. Null if there was none. */
  lastSequence: number | null
}

/**
 * Schedules up to `limit` deliveries of one status again. Failed ones are read in the order of their sequence,
 * after `afterSequence`. Waiting ones leave their status, so they need no position. They are read from the
 * latest due time on, because those that fail again during the retry are due soon.
 */
export async function retryStep(
  db: Queryable,
  {
    workspaceId,
    webhookId,
    status,
    scope,
    afterSequence,
    limit,
    now,
  }: WebhookRef & {
    status: RetryableStatus
    scope: RetryScope
    afterSequence: number
    limit: number
    now: Date
  },
): Promise<RetryStep> {
  const ref = { workspaceId, webhookId }
  const order =
    status === 'FAILED'
      ? sql`and d.sequence > ${afterSequence} order by d.sequence`
      : sql`order by d.due_at desc`
  const { rows } = await sql<RetryStep>`
    with found as materialized (
      select d.*, d.event_seq is null
                  or coalesce((select true from ${eventOf('d')}), false) as is_sendable
        from (select d.* from webhook_delivery d
               where ${retryableCondition(ref, status)} and d.sequence <= ${scope.throughSequence}
                 and d.updated_at <= ${scope.previewedAt}
                 ${order}
               limit ${sql.lit(limit)}
                 for update of d skip locked) as d
    ), chosen as materialized (
      select * from found where is_sendable
    ), ${resendChosen({ ...ref, now })}
    select count(*) filter (where is_sendable) as queued,
           count(*) filter (where not is_sendable) as archived,
           max(sequence) as "lastSequence"
      from found`.execute(db)
  return rows[0] ?? { queued: 0, archived: 0, lastSequence: null }
}

/** The status is a literal, so that the planner can use the partial index that contains it. */
function retryableCondition(
  { workspaceId, webhookId }: WebhookRef,
  status: RetryableStatus,
): RawBuilder<unknown> {
  return sql`d.workspace_id = ${hiddenFromPlanner(workspaceId)}
                 and d.webhook_id = ${hiddenFromPlanner(webhookId)}
                 and d.status = ${sql.lit(status)}`
}
