import { sql } from 'kysely'
import type { CompanyId, WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

/** Identifies a fork. It stays the same if `annals ledger-fork` is repeated after a crash. */
export type ForkKey = {
  workspaceId: WorkspaceId
  /** The SHA-256 of the object with what was signed. */
  replacedSha256: string
  acceptedSize: number
  acceptedRoot: string
}

/**
 * Whether the company's audit log has an entry for this fork. Reads only the table: a command that crashed is
 * repeated long before its entry is archived.
 */
export async function hasForkEntry(
  db: Queryable,
  companyId: CompanyId,
  key: ForkKey,
): Promise<boolean> {
  const { rows } = await sql`
    select
      from workspace w
      join event e on e.workspace_id = w.id
     where w.company_id = ${companyId} and w.kind = 'SYSTEM'
       and e.action = 'LEDGER_FORK_ACCEPTED'
       and e.metadata::jsonb @> ${JSON.stringify(key)}::jsonb
     limit 1`.execute(db)
  return rows.length > 0
}
