import { ApiError } from '../errors.ts'
import type { CompanyId, UserId } from '../platform/id.ts'
import { type Queryable, sqlStateOf, SQLSTATE } from '../platform/pg.ts'

export const ROLES = ['OWNER', 'ADMIN', 'ANALYST', 'VIEWER'] as const
export type Role = (typeof ROLES)[number]

export async function insertUser(
  db: Queryable,
  user: { id: UserId; companyId: CompanyId; email: string; passwordHash: string; role: Role },
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
    throw new ApiError('conflict', { message: `There is an account for ${user.email} already.` })
  }
}

export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text)
}
