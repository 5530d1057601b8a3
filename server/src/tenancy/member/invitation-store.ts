import { ApiError } from '../../errors.ts'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { mapInSlices } from '../../platform/scheduling/time-slice.ts'
import { hasCompanyAccess } from './member-store.ts'
import type { LinkId } from './one-time-link-store.ts'
import { COMPANY_BOUNDS } from '../plans.ts'
import { isRole, type Role } from './user-store.ts'

/** A pending invitation, as shown to the members who manage invitations. */
export type Invitation = {
  id: LinkId
  email: string
  role: Role
  /** Null means the whole company. */
  workspaceIds: WorkspaceId[] | null
  createdAt: Date
  expiresAt: Date
}

/** Invitations that haven't expired, newest first. */
export async function listOpenInvitations(
  db: Queryable,
  { companyId, now }: { companyId: CompanyId; now: Date },
): Promise<Invitation[]> {
  const rows = await db
    .selectFrom('one_time_link')
    .select(['id', 'email', 'role', 'workspace_ids', 'created_at', 'expires_at'])
    .where('company_id', '=', companyId)
    .where('kind', '=', 'INVITATION')
    .where('expires_at', '>', now)
    .orderBy('created_at', 'desc')
    .limit(COMPANY_BOUNDS.membersMax)
    .execute()
  return await mapInSlices(rows, toInvitation, companyId)
}

/** Invalidates the invitation's link. */
export async function deleteInvitation(
  db: Queryable,
  { companyId, invitationId }: { companyId: CompanyId; invitationId: LinkId },
): Promise<Invitation> {
  const row = await db
    .deleteFrom('one_time_link')
    .where('company_id', '=', companyId)
    .where('id', '=', invitationId)
    .where('kind', '=', 'INVITATION')
    .returning(['id', 'email', 'role', 'workspace_ids', 'created_at', 'expires_at'])
    .executeTakeFirst()
  if (!row) throw new ApiError('not_found')
  return toInvitation(row)
}

function toInvitation(row: {
  id: string
  email: string
  role: string | null
  workspace_ids: string[]
  created_at: Date
  expires_at: Date
}): Invitation {
  // A table constraint ensures that every invitation has one of the roles.
  const role = row.role !== null && isRole(row.role) ? row.role : 'VIEWER'
  return {
    id: assertId(row.id),
    email: row.email,
    role,
    workspaceIds: hasCompanyAccess(role) ? null : row.workspace_ids.map((id) => assertId(id)),
    createdAt: row.created_at,
    expiresAt: row.expires_at,
  }
}
