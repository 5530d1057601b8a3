import { hash } from 'node:crypto'
import { assertId, type CompanyId, type UserId, type WorkspaceId } from '../../platform/id.ts'
import { type Queryable, sqlStateOf, SQLSTATE } from '../../platform/pg/database.ts'
import type { MemberGrant } from '../member/member-store.ts'
import { isRole, type Role } from '../member/user-store.ts'

/** The account of a person at an identity provider. */
type IdentityName = { issuer: string; subject: string }

/** The account of a member, as a sign-in needs it. */
export type MemberAccount = { userId: UserId; companyId: CompanyId; email: string; role: Role }

/** The member whose account is linked to the identity. */
export async function findLinkedAccount(
  db: Queryable,
  { issuer, subject }: IdentityName,
): Promise<MemberAccount | null> {
  const row = await db
    .selectFrom('user_identity as i')
    .innerJoin('app_user as u', 'u.id', 'i.user_id')
    .select(['u.id', 'u.company_id', 'u.email', 'u.role'])
    .where('i.issuer', '=', issuer)
    .where('i.subject', '=', subject)
    .executeTakeFirst()
  return row ? toAccount(row) : null
}

/** The member with the email address, and the subject that their account is linked to at the issuer. */
export async function findAddressAccount(
  db: Queryable,
  { issuer, email }: { issuer: string; email: string },
): Promise<(MemberAccount & { subject: string | null }) | null> {
  const row = await db
    .selectFrom('app_user as u')
    .leftJoin('user_identity as i', (join) =>
      join.onRef('i.user_id', '=', 'u.id').on('i.issuer', '=', issuer),
    )
    .select(['u.id', 'u.company_id', 'u.email', 'u.role', 'i.subject'])
    .where('u.email', '=', email.toLowerCase())
    .executeTakeFirst()
  const account = row && toAccount(row)
  return account ? { ...account, subject: row.subject } : null
}

function toAccount(row: {
  id: string
  company_id: string
  email: string
  role: string
}): MemberAccount | null {
  if (!isRole(row.role)) return null
  const { email, role } = row
  return { userId: assertId(row.id), companyId: assertId(row.company_id), email, role }
}

/** What groups granted at the last sign-in, and what the member has without them. */
export type GroupState = { granted: MemberGrant | null; own: MemberGrant | null }

type Identity = IdentityName & { linkedAt: Date; usedAt: Date } & GroupState

export type LinkedIdentity = IdentityName & { userId: UserId; linkedAt: Date; usedAt: Date }

/** The links of all members of a company. */
export async function listLinkedIdentities(
  db: Queryable,
  companyId: CompanyId,
): Promise<LinkedIdentity[]> {
  const rows = await db
    .selectFrom('app_user as u')
    .innerJoin('user_identity as i', 'i.user_id', 'u.id')
    .select(['i.user_id', 'i.issuer', 'i.subject', 'i.linked_at', 'i.used_at'])
    .where('u.company_id', '=', companyId)
    .orderBy('i.linked_at')
    .execute()
  return rows.map(({ user_id, issuer, subject, linked_at, used_at }) => ({
    userId: assertId(user_id),
    issuer,
    subject,
    linkedAt: linked_at,
    usedAt: used_at,
  }))
}

/** The link of a member to the issuer, or null. */
export async function findIdentity(
  db: Queryable,
  { userId, issuer }: { userId: UserId; issuer: string },
): Promise<Identity | null> {
  const row = await db
    .selectFrom('user_identity')
    .selectAll()
    .where('user_id', '=', userId)
    .where('issuer', '=', issuer)
    .executeTakeFirst()
  if (!row) return null
  return {
    issuer: row.issuer,
    subject: row.subject,
    linkedAt: row.linked_at,
    usedAt: row.used_at,
    granted: toGrant(row.group_role, row.group_workspaces),
    own: toGrant(row.own_role, row.own_workspaces),
  }
}

function toGrant(role: string | null, workspaces: readonly string[]): MemberGrant | null {
  if (role === null || !isRole(role)) return null
  const hasAll = role === 'OWNER' || role === 'ADMIN'
  return { role, workspaceIds: hasAll ? null : workspaces.map((id) => assertId<'workspace'>(id)) }
}

/** Returns false if the identity or the account was linked meanwhile. */
export async function insertIdentity(
  trx: Queryable,
  { userId, issuer, subject, nowMs }: IdentityName & { userId: UserId; nowMs: number },
): Promise<boolean> {
  const now = new Date(nowMs)
  // If the operator has changed the provider, what groups of the previous one granted still ends with them.
  const previous = await trx
    .selectFrom('user_identity')
    .select(['group_role', 'group_workspaces', 'own_role', 'own_workspaces'])
    .where('user_id', '=', userId)
    .orderBy('used_at', 'desc')
    .limit(1)
    .executeTakeFirst()
  const result = await trx
    .insertInto('user_identity')
    .values({ user_id: userId, issuer, subject, linked_at: now, used_at: now, ...previous })
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst()
  return result.numInsertedOrUpdatedRows === 1n
}

/** Call it at every sign-in with the identity. */
export async function updateIdentity(
  trx: Queryable,
  {
    userId,
    issuer,
    granted,
    own,
    nowMs,
  }: { userId: UserId; issuer: string; nowMs: number } & GroupState,
): Promise<void> {
  await trx
    .updateTable('user_identity')
    .set({
      used_at: new Date(nowMs),
      group_role: granted?.role ?? null,
      group_workspaces: idsOf(granted),
      own_role: own?.role ?? null,
      own_workspaces: idsOf(own),
    })
    .where('user_id', '=', userId)
    .where('issuer', '=', issuer)
    .execute()
}

function idsOf(grant: MemberGrant | null): WorkspaceId[] {
  return [...(grant?.workspaceIds ?? [])]
}

/** Returns the deleted link, or null if there was none. */
export async function deleteIdentity(
  trx: Queryable,
  { userId, issuer }: { userId: UserId; issuer: string },
): Promise<{ subject: string } | null> {
  const row = await trx
    .deleteFrom('user_identity')
    .where('user_id', '=', userId)
    .where('issuer', '=', issuer)
    .returning('subject')
    .executeTakeFirst()
  return row ?? null
}

/** Locks the account until the transaction ends. Returns false if it was deleted. */
export async function lockMemberAccount(trx: Queryable, userId: UserId): Promise<boolean> {
  const row = await trx
    .selectFrom('app_user')
    .select('id')
    .where('id', '=', userId)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row !== undefined
}

/** Records that a sign-in returned from the provider. Returns false if it had already returned, on any node. */
export async function consumeSignIn(
  db: Queryable,
  { state, expiresAt }: { state: string; expiresAt: Date },
): Promise<boolean> {
  try {
    await db
      .insertInto('used_sign_in')
      .values({ state_hash: hash('sha256', state, 'buffer'), expires_at: expiresAt })
      .execute()
    return true
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.UNIQUE_VIOLATION) throw error
    return false
  }
}
