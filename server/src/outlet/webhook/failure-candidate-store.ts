import { sql } from 'kysely'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import type { WebhookId } from './delivery/delivery.ts'

export type FailureCandidate = {
  companyId: CompanyId
  workspaceId: WorkspaceId
  id: WebhookId
  name: string | null
  url: string
  /** Failed attempts since the last success. */
  failureCount: number
}

/**
 * The enabled webhooks that can be failing, page by page in primary key order. One without open deliveries and
 * without a failure in the period of the health can't be.
 */
export async function listFailureCandidates(
  db: Queryable,
  { after, nowMs, limit }: { after: FailureCandidate | null; nowMs: number; limit: number },
): Promise<FailureCandidate[]> {
  const { rows } = await sql<
    Record<'companyId' | 'workspaceId' | 'id' | 'url', string> & {
      name: string | null
      failureCount: number
    }
  >`
    select company_id as "companyId", workspace_id as "workspaceId", id, name, url,
           failure_count as "failureCount"
      from webhook
     where status = 'ENABLED' and deleted_at is null
       and (open_count > 0 or last_failure_at > ${new Date(nowMs - DAY_MS)})
       and ${after === null ? sql`true` : sql`(workspace_id, id) > (${after.workspaceId}::uuid, ${after.id}::uuid)`}
     order by workspace_id, id
     limit ${limit}`.execute(db)
  return rows.map((row) => ({
    ...row,
    companyId: assertId(row.companyId),
    workspaceId: assertId(row.workspaceId),
    id: assertId(row.id),
  }))
}
