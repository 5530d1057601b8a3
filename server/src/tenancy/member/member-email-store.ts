import type { CompanyId, UserId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** Maps user ids to email addresses. Leaves out former members. */
export async function listMemberEmails(
  db: Queryable,
  { companyId, userIds }: { companyId: CompanyId; userIds: readonly UserId[] },
): Promise<ReadonlyMap<string, string>> {
  if (userIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('app_user')
    .select(['id', 'email'])
    .where('company_id', '=', companyId)
    .where('id', 'in', userIds)
    .execute()
  return new Map(rows.map(({ id, email }) => [id, email]))
}
