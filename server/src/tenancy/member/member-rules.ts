import { ApiError } from '../../errors.ts'
import { type CompanyId, parseId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { countOwners, hasCompanyAccess, type Member, type MemberGrant } from './member-store.ts'
import type { Role } from './user-store.ts'
import { getSystemWorkspace, listCustomerWorkspaces } from '../workspace/workspace-store.ts'

/**
 * Validates the role and workspaces that a request wants to grant. A role with access to the whole company
 * must name no workspaces, and any other role at least one of the company's workspaces.
 */
export async function readGrant(
  db: Queryable,
  companyId: CompanyId,
  { role, workspaceIds }: { role: Role; workspaceIds: readonly string[] },
): Promise<MemberGrant> {
  if (hasCompanyAccess(role)) {
    if (workspaceIds.length > 0)
      refuseWorkspaces(`must be empty: ${role} has access to the whole company`)
    return { role, workspaceIds: null }
  }
  if (workspaceIds.length === 0) refuseWorkspaces(`must contain at least one workspace for ${role}`)
  return { role, workspaceIds: await ownWorkspaces(db, companyId, workspaceIds) }
}

function refuseWorkspaces(message: string): never {
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: /workspaceIds ${message}.`,
    details: [{ path: '/workspaceIds', message }],
  })
}

async function ownWorkspaces(
  db: Queryable,
  companyId: CompanyId,
  named: readonly string[],
): Promise<WorkspaceId[]> {
  const ids = new Set(named.map((text) => parseId<'workspace'>(text)))
  const own = await listCustomerWorkspaces(db, companyId)
  const given = own.filter((id) => ids.has(id))
  if (given.length === ids.size) return given
  if (ids.has(await getSystemWorkspace(db, companyId))) {
    refuseWorkspaces(
      'must not contain the system workspace, which only owners and admins can access',
    )
  }
  throw new ApiError('not_found')
}

/** Call it with the company locked, before changing the role of an owner or removing them. */
export async function refuseLastOwner(
  db: Queryable,
  companyId: CompanyId,
  { role }: Pick<Member, 'role'>,
): Promise<void> {
  if (role !== 'OWNER' || (await countOwners(db, companyId)) > 1) return
  throw new ApiError('conflict', {
    message: 'This is the last owner. Make another member an owner first.',
  })
}
