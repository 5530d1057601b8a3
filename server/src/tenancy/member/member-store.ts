import { sql } from 'kysely'
import { assertId, type CompanyId, type UserId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { mapInSlices } from '../../platform/scheduling/time-slice.ts'
import { COMPANY_BOUNDS } from '../plans.ts'
import { isRole, type Role } from './user-store.ts'

export type Member = {
  id: UserId
  email: string
  role: Role
  /** Null means the whole company. */
  workspaceIds: WorkspaceId[] | null
  createdAt: Date
  /** Null if the member has no stored sessions: expired ones are deleted. */
  lastSeenAt: Date | null
  hasSecondFactor: boolean
}

type MemberRow = {
  id: string
  email: string
  role: string
  workspaceIds: string[]
  createdAt: Date
  lastSeenAt: Date | null
  hasSecondFactor: boolean
}

/** Oldest first. */
export async function listCompanyMembers(db: Queryable, companyId: CompanyId): Promise<Member[]> {
  return await selectMembers(db, companyId, null)
}

export async function findMember(
  db: Queryable,
  { companyId, userId }: { companyId: CompanyId; userId: UserId },
): Promise<Member | null> {
  const [member] = await selectMembers(db, companyId, userId)
  return member ?? null
}

async function selectMembers(
  db: Queryable,
  companyId: CompanyId,
  userId: UserId | null,
): Promise<Member[]> {
  const { rows } = await sql<MemberRow>`
    select u.id, u.email, u.role, u.created_at as "createdAt",
           array(select w.workspace_id from user_workspace w
                  where w.user_id = u.id order by w.workspace_id) as "workspaceIds",
           (select max(s.seen_at) from user_session s where s.user_id = u.id) as "lastSeenAt",
           exists (select from second_factor f
                    where f.user_id = u.id and f.confirmed_at is not null) as "hasSecondFactor"
      from app_user u
     where u.company_id = ${companyId} and (${userId}::uuid is null or u.id = ${userId})
     order by u.created_at, u.id
     limit ${COMPANY_BOUNDS.membersMax}`.execute(db)
  return await mapInSlices(rows, toMember, companyId)
}

function toMember({ id, role, workspaceIds, ...row }: MemberRow): Member {
  // A table constraint excludes other roles, and a member with an unknown role couldn't sign in.
  const known = isRole(role) ? role : 'VIEWER'
  return {
    ...row,
    id: assertId(id),
    role: known,
    workspaceIds: hasCompanyAccess(known) ? null : workspaceIds.map((given) => assertId(given)),
  }
}

export function hasCompanyAccess(role: Role): boolean {
  return role === 'OWNER' || role === 'ADMIN'
}

/** Call it with the company locked, so that the count can't change until the transaction ends. */
export async function countOwners(db: Queryable, companyId: CompanyId): Promise<number> {
  const { count } = await db
    .selectFrom('app_user')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('company_id', '=', companyId)
    .where('role', '=', 'OWNER')
    .executeTakeFirstOrThrow()
  return count
}

export type MemberGrant = { role: Role; workspaceIds: readonly WorkspaceId[] | null }

export async function updateMemberGrant(
  db: Queryable,
  userId: UserId,
  { role, workspaceIds }: MemberGrant,
): Promise<void> {
  await db.updateTable('app_user').set({ role }).where('id', '=', userId).execute()
  await db.deleteFrom('user_workspace').where('user_id', '=', userId).execute()
  const rows = (workspaceIds ?? []).map((id) => ({ user_id: userId, workspace_id: id }))
  if (rows.length > 0) await db.insertInto('user_workspace').values(rows).execute()
}

/** Also deletes their sessions, second factor, reset links and private views. Shared views and templates stay, ownerless. */
export async function deleteMember(db: Queryable, userId: UserId): Promise<void> {
  await db
    .deleteFrom('explorer_view')
    .where('owner_id', '=', userId)
    .where('visibility', '=', 'PRIVATE')
    .execute()
  await db.deleteFrom('app_user').where('id', '=', userId).execute()
}
