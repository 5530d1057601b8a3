import { sql } from 'kysely'
import type { Queryable } from '../../platform/pg/database.ts'

/** The id of the archive that this database uses, or null before the first segment. */
export async function readArchiveId(db: Queryable): Promise<string | null> {
  const row = await db.selectFrom('archive_identity').select('archive_id').executeTakeFirst()
  return row?.archive_id ?? null
}

/** Returns false if another archiver was first. */
export async function insertArchiveIdIfAbsent(
  db: Queryable,
  archiveId: string,
  now: Date,
): Promise<boolean> {
  const { rows } = await sql`
    insert into archive_identity (archive_id, created_at) values (${archiveId}, ${now})
    on conflict do nothing
    returning 1`.execute(db)
  return rows.length === 1
}
