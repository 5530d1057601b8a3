import { sql } from 'kysely'
import type { Queryable } from '../../platform/pg/database.ts'

/** Their rows no longer work after `expires_at`. */
export const EXPIRING_TABLES = [
  'user_session',
  'one_time_link',
  'sign_in_challenge',
  'used_sign_in',
] as const
type ExpiringTable = (typeof EXPIRING_TABLES)[number]

const KEYS: Readonly<Record<ExpiringTable, string>> = {
  user_session: 'id',
  one_time_link: 'id',
  sign_in_challenge: 'token_hash',
  used_sign_in: 'state_hash',
}

/** Deletes the rows that expired first. Returns their number. */
export async function deleteExpiredRows(
  db: Queryable,
  name: ExpiringTable,
  { now, limit }: { now: Date; limit: number },
): Promise<number> {
  const [table, key] = [sql.table(name), sql.ref(KEYS[name])]
  const { numAffectedRows } = await sql`
    delete from ${table}
     where ${key} in (select ${key}
                        from ${table}
                       where expires_at <= ${now}
                       order by expires_at
                       limit ${limit})`.execute(db)
  return Number(numAffectedRows ?? 0n)
}
