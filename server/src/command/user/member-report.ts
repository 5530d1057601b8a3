import type { CompanyId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { type LinkedIdentity, listLinkedIdentities } from '../../tenancy/identity/identity-store.ts'
import { listCompanyMembers, type Member } from '../../tenancy/member/member-store.ts'
import {
  listViewerWorkspaces,
  type NamedWorkspace,
} from '../../tenancy/workspace/workspace-store.ts'

/** A member as the operator sees them. */
export type MemberReport = Omit<Member, 'workspaceIds'> & {
  companyId: CompanyId
  /** Null means the whole company. */
  workspaces: Pick<NamedWorkspace, 'id' | 'name'>[] | null
  identities: Omit<LinkedIdentity, 'userId'>[]
}

/** The members of a company, the oldest first. A company has at most 500. */
export async function readMemberReports(
  db: Queryable,
  companyId: CompanyId,
): Promise<MemberReport[]> {
  const members = await listCompanyMembers(db, companyId)
  const named = await listViewerWorkspaces(db, { companyId, workspaceIds: null })
  const identities = await listLinkedIdentities(db, companyId)
  return members.map(({ workspaceIds, ...member }) => ({
    ...member,
    companyId,
    workspaces:
      workspaceIds &&
      named.filter(({ id }) => workspaceIds.includes(id)).map(({ id, name }) => ({ id, name })),
    identities: identities
      .filter(({ userId }) => userId === member.id)
      .map(({ issuer, subject, linkedAt, usedAt }) => ({ issuer, subject, linkedAt, usedAt })),
  }))
}

/** The names of the workspaces that a member can see. */
export function accessText({ workspaces }: MemberReport): string {
  if (workspaces === null) return 'all'
  return workspaces.map(({ name }) => name).join(', ') || 'none'
}
