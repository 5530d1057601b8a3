import { sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import { assertId, type CompanyId, type UserId, type WorkspaceId } from '../../platform/id.ts'
import { type Queryable, sqlStateOf, SQLSTATE } from '../../platform/pg/database.ts'

export const ROLES = ['OWNER', 'ADMIN', 'ANALYST', 'VIEWER'] as const
export type Role = (typeof ROLES)[number]

export async function insertUser(
  db: Queryable,
  user: {
    id: UserId
    companyId: CompanyId
    email: string
    passwordHash: string | null
    role: Role
  },
): Promise<void> {
  try {
    await db
      .insertInto('app_user')
      .values({
        id: user.id,
        company_id: user.companyId,
        email: user.email.toLowerCase(),
        password_hash: user.passwordHash,
        role: user.role,
      })
      .execute()
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.UNIQUE_VIOLATION) throw error
    throw new ApiError('conflict', {
      message: `There is already an account for ${user.email}. Use another address.`,
    })
  }
}

/** The fields needed to sign in. */
export type Account = {
  userId: UserId
  companyId: CompanyId
  email: string
  role: Role
  /** Null for a member who signs in with OpenID Connect and has no password. */
  passwordHash: string | null
}

export async function findAccount(db: Queryable, email: string): Promise<Account | null> {
  const row = await db
    .selectFrom('app_user')
    .select(['id', 'company_id', 'email', 'role', 'password_hash'])
    .where('email', '=', email.toLowerCase())
    .executeTakeFirst()
  if (!row || !isRole(row.role)) return null
  return {
    userId: assertId(row.id),
    companyId: assertId(row.company_id),
    email: row.email,
    role: row.role,
    passwordHash: row.password_hash,
  }
}

/**
 * Locks the account until the transaction ends. Returns false if it was deleted, or if its password has
 * changed since it was checked.
 */
export async function lockAccount(
  trx: Queryable,
  { userId, passwordHash }: { userId: UserId; passwordHash: string | null },
): Promise<boolean> {
  const row = await trx
    .selectFrom('app_user')
    .select('id')
    .where('id', '=', userId)
    .where('password_hash', 'is not distinct from', passwordHash)
    .forNoKeyUpdate()
    .executeTakeFirst()
  return row !== undefined
}

/** Returns false if the member no longer exists. */
export async function setPasswordHash(
  trx: Queryable,
  { userId, passwordHash }: { userId: UserId; passwordHash: string },
): Promise<boolean> {
  const result = await trx
    .updateTable('app_user')
    .set({ password_hash: passwordHash })
    .where('id', '=', userId)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Skips ids that aren't workspaces of the company. */
export async function grantWorkspaces(
  trx: Queryable,
  {
    companyId,
    userId,
    workspaceIds,
  }: { companyId: CompanyId; userId: UserId; workspaceIds: readonly WorkspaceId[] },
): Promise<void> {
  await sql`
    insert into user_workspace (user_id, workspace_id)
    select ${userId}, id from workspace
     where company_id = ${companyId} and id = any(${[...workspaceIds]}::uuid[])`.execute(trx)
}

export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text)
}
