import { sql } from 'kysely'
import { hiddenFromPlanner } from '../../../platform/pg/hidden-value.ts'
import { assertId, type WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { WebhookId } from './delivery.ts'

export type SweptWebhook = { workspaceId: WorkspaceId; webhookId: WebhookId; isDeleted: boolean }

/** All webhooks, including deleted ones, page by page in primary key order. */
export async function listSweptWebhooks(
  db: Queryable,
  { after, limit }: { after: SweptWebhook | null; limit: number },
): Promise<SweptWebhook[]> {
  const { rows } = await sql<{ workspaceId: string; webhookId: string; isDeleted: boolean }>`
    select workspace_id as "workspaceId", id as "webhookId", deleted_at is not null as "isDeleted"
      from webhook
     where ${after === null ? sql`true` : sql`(workspace_id, id) > (${after.workspaceId}::uuid, ${after.webhookId}::uuid)`}
     order by workspace_id, id
     limit ${limit}`.execute(db)
  return rows.map((row) => ({
    ...row,
    workspaceId: assertId(row.workspaceId),
    webhookId: assertId(row.webhookId),
  }))
}

/**
 * Deletes up to `limit` deliveries of a webhook that ended before the given time, or any deliveries if the
 * webhook is deleted. The oldest come first by sequence, so it only checks the beginning. It deletes by ctid,
 * because for a thousand ids PostgreSQL would prefer to scan a small table. Returns how many it deleted.
 */
export async function deleteEnded(
  db: Queryable,
  { workspaceId, webhookId, isDeleted }: SweptWebhook,
  { before, limit }: { before: Date; limit: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from webhook_delivery d
     where d.ctid = any(array(
             select ctid
               from webhook_delivery
              where workspace_id = ${hiddenFromPlanner(workspaceId)} and webhook_id = ${webhookId}
              order by sequence
              limit ${limit}))
       and (${isDeleted} or (d.status in ('SUCCEEDED', 'FAILED') and d.updated_at < ${before}))`.execute(
    db,
  )
  return Number(numAffectedRows ?? 0n)
}

/**
 * Makes deliveries that are due after `dueMax` due now, and ends a pause that would last longer. They were scheduled
 * while the clock was ahead.
 */
export async function rescheduleDueBy(
  db: Queryable,
  { workspaceId, webhookId }: SweptWebhook,
  { now, dueMax }: { now: Date; dueMax: Date },
): Promise<void> {
  await sql`
    update webhook_delivery
       set due_at = ${now}
     where workspace_id = ${hiddenFromPlanner(workspaceId)} and webhook_id = ${webhookId}
       and status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED') and due_at > ${dueMax}`.execute(db)
  await sql`
    update webhook
       set resting_until = null
     where workspace_id = ${workspaceId} and id = ${webhookId} and resting_until > ${dueMax}`.execute(
    db,
  )
}

/** Deletes the row of a deleted webhook once it has no deliveries left. */
export async function deleteEmptied(
  db: Queryable,
  { workspaceId, webhookId }: SweptWebhook,
): Promise<void> {
  await sql`
    delete from webhook w
     where w.workspace_id = ${workspaceId} and w.id = ${webhookId} and w.deleted_at is not null
       and not exists (
         select from webhook_delivery d
          where d.workspace_id = w.workspace_id and d.webhook_id = w.id)`.execute(db)
}
