import { sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import { assertId, type CompanyId, parseId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { COMPANY_BOUNDS } from '../plans.ts'
import type { WorkspaceKind } from './workspace-store.ts'

/** A workspace with its usage, counted the way the limits are enforced. */
export type WorkspaceSummary = {
  id: WorkspaceId
  name: string
  kind: WorkspaceKind
  createdAt: Date
  projects: number
  keys: number
  /** Replaced keys in their grace period. They work, but don't count toward the limit. */
  rotatingKeys: number
  webhooks: number
  /** All events ever sealed, including archived ones. */
  events: number
}

type SummaryRow = Omit<WorkspaceSummary, 'id' | 'kind'> & { id: string; kind: string }

/** The workspaces a member can see, sorted by name. Null ids mean all, including the system workspace. */
export async function listWorkspaceSummaries(
  db: Queryable,
  where: { companyId: CompanyId; workspaceIds: readonly WorkspaceId[] | null },
  now: Date,
): Promise<WorkspaceSummary[]> {
  // Counts the keys of all workspaces at once, because the index on keys is by company.
  const { rows } = await sql<SummaryRow>`
    with key_count as materialized (
      select workspace_id,
             count(*) filter (where grace_until is null) as keys,
             count(*) filter (where grace_until > ${now}) as rotating
        from api_key
       where company_id = ${where.companyId} and revoked_at is null
         and (expires_at is null or expires_at > ${now})
       group by workspace_id
    )
    select w.id, w.name, w.kind, w.created_at as "createdAt", h.seq as events,
           coalesce(k.keys, 0) as keys, coalesce(k.rotating, 0) as "rotatingKeys",
           (select count(*) from project p where p.workspace_id = w.id) as projects,
           (select count(*) from webhook o
             where o.workspace_id = w.id and o.deleted_at is null) as webhooks
      from workspace w
      join chain_head h on h.workspace_id = w.id
      left join key_count k on k.workspace_id = w.id
     where w.company_id = ${where.companyId}
       and (${where.workspaceIds}::uuid[] is null or w.id = any(${where.workspaceIds}::uuid[]))
     order by w.name
     limit ${COMPANY_BOUNDS.workspacesMax + 1}`.execute(db)
  return rows.map((row) => ({
    ...row,
    id: assertId(row.id),
    kind: row.kind === 'SYSTEM' ? 'SYSTEM' : 'CUSTOMER',
  }))
}

/**
 * The workspace that a path or body names. Another company's workspace and an invalid id get the same
 * error as a workspace that doesn't exist.
 */
export async function getWorkspaceSummary(
  db: Queryable,
  { companyId, named }: { companyId: CompanyId; named: string },
  now: Date,
): Promise<WorkspaceSummary> {
  const id = parseId<'workspace'>(named)
  const where = { companyId, workspaceIds: id === null ? [] : [id] }
  const [summary] = await listWorkspaceSummaries(db, where, now)
  if (!summary) throw new ApiError('not_found')
  return summary
}

/** Guards changes that are allowed only in customer workspaces. */
export function refuseSystemWorkspace({ kind }: { kind: WorkspaceKind }): void {
  if (kind === 'CUSTOMER') return
  throw new ApiError('conflict', {
    message:
      "This is the system workspace, which contains the company's audit log. It can't be changed.",
  })
}
