import { sql } from 'kysely'
import type { CompanyId, WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { OwnerNames } from '../file-name.ts'

export async function readOwnerNames(
  db: Queryable,
  { companyId, workspaceId }: { companyId: CompanyId; workspaceId: WorkspaceId | null },
): Promise<OwnerNames> {
  const { rows } = await sql<OwnerNames>`
    select c.name as company, w.name as workspace
      from company c
      left join workspace w on w.company_id = c.id and w.id = ${workspaceId}::uuid
     where c.id = ${companyId}`.execute(db)
  return rows[0] ?? { company: '', workspace: null }
}
