import { hash, randomBytes } from 'node:crypto'
import { ApiError } from '../../errors.ts'
import { assertId, type CompanyId, type Id, newId, type UserId } from '../../platform/id.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { DAY_MS, HOUR_MS } from '../../platform/time/time-units.ts'
import { lockCompany } from '../company-store.ts'
import { COMPANY_BOUNDS } from '../plans.ts'
import { isRole, type Role } from './user-store.ts'

export type LinkId = Id<'link'>
/** The part of the link after the `#`. The database stores only its hash. */
export type LinkToken = string
export type NewLink = { id: LinkId; token: LinkToken; expiresAt: Date }

export const INVITATION_LIFE_MS = 7 * DAY_MS
const RESET_LIFE_MS = HOUR_MS
/** A new link deletes the oldest beyond this limit. Older links keep working, because mail can be slow. */
const RESETS_PER_USER_MAX = 5
const TOKEN_BYTES = 32

type Link = { id: LinkId; companyId: CompanyId; email: string }
export type OpenLink = Link &
  (
    | { kind: 'INVITATION'; role: Role; workspaceIds: WorkspaceId[] }
    | { kind: 'RESET'; userId: UserId }
  )

/**
 * Call it inside a transaction: the lock that enforces the limit lasts until the transaction ends. A new
 * invitation to the same address replaces the first and invalidates its link. The caller must validate
 * the workspaces.
 */
export async function insertInvitation(
  trx: Queryable,
  invitation: {
    companyId: CompanyId
    email: string
    role: Role
    workspaceIds: readonly WorkspaceId[]
    createdBy: UserId | null
    nowMs: number
  },
): Promise<NewLink & { replacedRole: string | null }> {
  const { companyId, role, createdBy, nowMs } = invitation
  const email = invitation.email.toLowerCase()
  await lockCompany(trx, companyId)
  const replaced = await trx
    .deleteFrom('one_time_link')
    .where('company_id', '=', companyId)
    .where('email', '=', email)
    .where('kind', '=', 'INVITATION')
    .returning('role')
    .executeTakeFirst()
  await refuseMember(trx, { companyId, email })
  await refuseTooManyMembers(trx, companyId)
  const { link, row } = insertLink(nowMs, INVITATION_LIFE_MS)
  await trx
    .insertInto('one_time_link')
    .values({
      ...row,
      kind: 'INVITATION',
      company_id: companyId,
      email,
      role,
      workspace_ids: [...invitation.workspaceIds],
      user_id: null,
      created_by: createdBy,
    })
    .execute()
  return { ...link, replacedRole: replaced?.role ?? null }
}

/** Call it inside a transaction. The old password works until the link is used. */
export async function insertResetLink(
  trx: Queryable,
  {
    companyId,
    userId,
    email,
    createdBy,
    nowMs,
  }: {
    companyId: CompanyId
    userId: UserId
    email: string
    createdBy: UserId | null
    nowMs: number
  },
): Promise<NewLink> {
  const { link, row } = insertLink(nowMs, RESET_LIFE_MS)
  await deleteOldestResets(trx, { companyId, userId, nowMs, keep: RESETS_PER_USER_MAX - 1 })
  await trx
    .insertInto('one_time_link')
    .values({
      ...row,
      kind: 'RESET',
      company_id: companyId,
      email,
      role: null,
      user_id: userId,
      created_by: createdBy,
    })
    .execute()
  return link
}

/** Returns null if the link is unknown, used or expired. */
export async function findLink(
  db: Queryable,
  token: LinkToken,
  nowMs: number,
): Promise<(OpenLink & { companyName: string }) | null> {
  const row = await db
    .selectFrom('one_time_link as l')
    .innerJoin('company as c', 'c.id', 'l.company_id')
    .selectAll('l')
    .select('c.name as company_name')
    .where('l.token_hash', '=', hashOf(token))
    .where('l.expires_at', '>', new Date(nowMs))
    .executeTakeFirst()
  return row ? { ...openLink(row), companyName: row.company_name } : null
}

/**
 * Deletes the link in the caller's transaction. If two requests use it at the same time, the second waits
 * for the first and finds nothing.
 */
export async function consumeLink(
  trx: Queryable,
  token: LinkToken,
  nowMs: number,
): Promise<OpenLink | null> {
  const row = await trx
    .deleteFrom('one_time_link')
    .where('token_hash', '=', hashOf(token))
    .where('expires_at', '>', new Date(nowMs))
    .returningAll()
    .executeTakeFirst()
  return row ? openLink(row) : null
}

export async function deleteResets(
  db: Queryable,
  { companyId, userId }: { companyId: CompanyId; userId: UserId },
): Promise<void> {
  await db
    .deleteFrom('one_time_link')
    .where('company_id', '=', companyId)
    .where('user_id', '=', userId)
    .execute()
}

async function deleteOldestResets(
  trx: Queryable,
  {
    companyId,
    userId,
    nowMs,
    keep,
  }: { companyId: CompanyId; userId: UserId; nowMs: number; keep: number },
): Promise<void> {
  await trx
    .deleteFrom('one_time_link')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('one_time_link')
        .select('id')
        .where('company_id', '=', companyId)
        .where('user_id', '=', userId)
        // Links dated in the future were created before the clock stepped back, so they are older.
        .orderBy((order) => order('created_at', '<=', new Date(nowMs)), 'desc')
        .orderBy('created_at', 'desc')
        .orderBy('id', 'desc')
        .offset(keep),
    )
    .execute()
}

/** Deletes the links a member created for others: they know the links, so losing the role ends these. */
export async function deleteLinksCreatedBy(
  db: Queryable,
  { companyId, userId }: { companyId: CompanyId; userId: UserId },
): Promise<number> {
  const result = await db
    .deleteFrom('one_time_link')
    .where('company_id', '=', companyId)
    .where('created_by', '=', userId)
    .executeTakeFirst()
  return Number(result.numDeletedRows)
}

/**
 * Call it when the role of a member changes. A link that an admin created for an analyst must stop working when
 * the analyst becomes an owner.
 */
export async function endLinksOfOldRole(
  trx: Queryable,
  { role, ...member }: { companyId: CompanyId; userId: UserId; role: Role },
): Promise<void> {
  await deleteResets(trx, member)
  if (role !== 'OWNER') await deleteLinksCreatedBy(trx, member)
}

function insertLink(nowMs: number, lifeMs: number) {
  const id = newId<'link'>(nowMs)
  const token = randomBytes(TOKEN_BYTES).toString('base64url')
  const expiresAt = new Date(nowMs + lifeMs)
  const row = {
    id,
    token_hash: hashOf(token),
    created_at: new Date(nowMs),
    expires_at: expiresAt,
  }
  return { link: { id, token, expiresAt }, row }
}

type LinkRow = {
  id: string
  company_id: string
  email: string
  role: string | null
  workspace_ids: string[]
  user_id: string | null
}

function openLink({ id, company_id, email, role, workspace_ids, user_id }: LinkRow): OpenLink {
  const link = { id: assertId<'link'>(id), companyId: assertId<'company'>(company_id), email }
  if (user_id !== null) return { ...link, kind: 'RESET', userId: assertId(user_id) }
  if (role === null || !isRole(role)) throw new Error('an invitation has a role')
  const workspaceIds = workspace_ids.map((workspaceId) => assertId<'workspace'>(workspaceId))
  return { ...link, kind: 'INVITATION', role, workspaceIds }
}

async function refuseMember(
  trx: Queryable,
  { companyId, email }: { companyId: CompanyId; email: string },
): Promise<void> {
  // Ignores accounts in other companies: the inviting member must not learn about them.
  const row = await trx
    .selectFrom('app_user')
    .select('id')
    .where('email', '=', email)
    .where('company_id', '=', companyId)
    .executeTakeFirst()
  if (row) throw new ApiError('conflict', { message: `${email} is already a member.` })
}

/** Invitations count as members, so that accepting one never exceeds the limit. */
export async function refuseTooManyMembers(trx: Queryable, companyId: CompanyId): Promise<void> {
  const members = await trx
    .selectFrom('app_user')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('company_id', '=', companyId)
    .executeTakeFirstOrThrow()
  const invited = await trx
    .selectFrom('one_time_link')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('company_id', '=', companyId)
    .where('kind', '=', 'INVITATION')
    .executeTakeFirstOrThrow()
  if (members.count + invited.count < COMPANY_BOUNDS.membersMax) return
  throw new ApiError('conflict', {
    message: `A company can have at most ${COMPANY_BOUNDS.membersMax} members, including those invited. Remove one first.`,
  })
}

function hashOf(token: LinkToken): Buffer {
  return hash('sha256', token, 'buffer')
}
