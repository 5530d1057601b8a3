import { sql } from 'kysely'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { combinedGrant } from './group-grant.ts'
import { hasCompanyAccess, type MemberGrant } from '../member/member-store.ts'
import { isRole, type Role } from '../member/user-store.ts'

/** Per company. */
export const GROUP_MAPPINGS_MAX = 100

type GroupMapping = { group: string; role: Role; workspaceIds: WorkspaceId[] | null }

/** What the groups grant, by company. Companies that the operator didn't map are never among them. */
export async function findMappedGrants(
  db: Queryable,
  groups: readonly string[],
): Promise<ReadonlyMap<CompanyId, MemberGrant>> {
  if (groups.length === 0) return new Map()
  // A workspace that was deleted, or that belongs to another company, grants nothing.
  const { rows } = await sql<{ companyId: string; role: string; workspaceIds: string[] }>`
    select m.company_id as "companyId", m.role,
           array(select w.id from workspace w
                  where w.company_id = m.company_id and w.kind = 'CUSTOMER'
                    and w.id = any (m.workspace_ids)) as "workspaceIds"
      from group_mapping m
     where m.group_name = any (${[...groups]}::text[])
     order by m.company_id, m.group_name`.execute(db)
  const grants = Map.groupBy(rows.flatMap(toGrant), ({ companyId }) => companyId)
  return new Map(
    [...grants].flatMap(([companyId, found]) => {
      const grant = combinedGrant(found.map((mapped) => mapped.grant))
      return grant ? [[companyId, grant]] : []
    }),
  )
}

function toGrant(row: { companyId: string; role: string; workspaceIds: string[] }) {
  if (!isRole(row.role)) return []
  const companyId: CompanyId = assertId(row.companyId)
  const isWhole = hasCompanyAccess(row.role)
  const workspaceIds = isWhole ? null : row.workspaceIds.map((id) => assertId<'workspace'>(id))
  if (workspaceIds?.length === 0) return []
  return [{ companyId, grant: { role: row.role, workspaceIds } }]
}

/** In alphabetical order. */
export async function listGroupMappings(
  db: Queryable,
  companyId: CompanyId,
): Promise<GroupMapping[]> {
  const rows = await db
    .selectFrom('group_mapping')
    .select(['group_name', 'role', 'workspace_ids'])
    .where('company_id', '=', companyId)
    .orderBy('group_name')
    .limit(GROUP_MAPPINGS_MAX)
    .execute()
  return rows.map(({ group_name: group, role, workspace_ids }) => {
    const known = isRole(role) ? role : 'VIEWER'
    const workspaceIds = hasCompanyAccess(known)
      ? null
      : workspace_ids.map((id) => assertId<'workspace'>(id))
    return { group, role: known, workspaceIds }
  })
}

/** Call it with the company locked. Returns false if the company has too many mappings. */
export async function putGroupMapping(
  trx: Queryable,
  {
    companyId,
    group,
    role,
    workspaceIds,
    nowMs,
  }: GroupMapping & { companyId: CompanyId; nowMs: number },
): Promise<boolean> {
  const known = await listGroupMappings(trx, companyId)
  const isNew = known.every((mapping) => mapping.group !== group)
  if (isNew && known.length >= GROUP_MAPPINGS_MAX) return false
  const grant = { role, workspace_ids: [...(workspaceIds ?? [])] }
  await trx
    .insertInto('group_mapping')
    .values({ company_id: companyId, group_name: group, ...grant, created_at: new Date(nowMs) })
    .onConflict((conflict) => conflict.columns(['company_id', 'group_name']).doUpdateSet(grant))
    .execute()
  return true
}

/** Returns false if the group isn't mapped. */
export async function deleteGroupMapping(
  trx: Queryable,
  { companyId, group }: { companyId: CompanyId; group: string },
): Promise<boolean> {
  const result = await trx
    .deleteFrom('group_mapping')
    .where('company_id', '=', companyId)
    .where('group_name', '=', group)
    .executeTakeFirst()
  return result.numDeletedRows === 1n
}
