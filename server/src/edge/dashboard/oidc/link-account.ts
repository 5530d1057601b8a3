import type { CompanyId, UserId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { AuditEntry } from '../../../tenancy/caller.ts'
import { findMappedGrants } from '../../../tenancy/identity/group-mapping-store.ts'
import { findLinkedAccount, insertIdentity } from '../../../tenancy/identity/identity-store.ts'
import type { UnlinkedPerson } from '../../../tenancy/sign-in/sign-in-challenge-store.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { updateGroupRole } from './update-group-role.ts'

type LinkDeps = Pick<DashboardDeps, 'clock' | 'logger'>
type Link = {
  member: { companyId: CompanyId; userId: UserId }
  person: UnlinkedPerson
  record: (entry: AuditEntry) => void
}

/**
 * Links the account of a member who has entered their second factor, and applies their groups. Call it with the
 * company locked. Another sign-in may have linked the account since the first step.
 */
export async function linkAfterSecondFactor(
  deps: LinkDeps,
  trx: Queryable,
  { member, person, record }: Link,
): Promise<'linked' | 'other_account' | 'access_removed'> {
  const linked = await findLinkedAccount(trx, person)
  if (linked?.userId !== member.userId) {
    if (!(await linkAccount(deps, trx, { member, person, record }))) return 'other_account'
  }
  const { issuer, groups } = person
  const desired = (await findMappedGrants(trx, groups)).get(member.companyId) ?? null
  const change = { member, issuer, desired, isNew: false, record }
  return (await updateGroupRole(deps, trx, change)) ? 'linked' : 'access_removed'
}

/** Returns false if the person or the account was linked meanwhile. */
export async function linkAccount(
  { clock }: Pick<LinkDeps, 'clock'>,
  trx: Queryable,
  { member: { userId }, person: { issuer, subject }, record }: Link,
): Promise<boolean> {
  if (!(await insertIdentity(trx, { userId, issuer, subject, nowMs: clock() }))) return false
  const resource = { type: 'user', id: userId }
  record({ action: 'IDENTITY_LINKED', resource, metadata: { issuer, subject } })
  return true
}
