import { sql } from 'kysely'
import { REPLACED_BYTES_MAX } from '../../../platform/object-store/object-store.ts'
import type { Queryable } from '../../../platform/pg/database.ts'

/** More than a valid list can have. The rest of a longer text is not read. */
const READ_CHARACTERS_MAX = REPLACED_BYTES_MAX + 1

/** The copy of the list of signing keys, or null if there is none. */
export async function readKeyListCopy(db: Queryable): Promise<string | null> {
  const { rows } = await sql<{ list: string }>`
    select left(list, ${READ_CHARACTERS_MAX}) as list from signing_key_list`.execute(db)
  return rows[0]?.list ?? null
}

/** Returns false if the copy is no longer `from`, which is null if there was none. */
export async function replaceKeyListCopy(
  db: Queryable,
  { from, to }: { from: string | null; to: string },
): Promise<boolean> {
  const { rows } = await sql`
    insert into signing_key_list as copy (list) values (${to})
    on conflict (is_only) do update set list = excluded.list
     where left(copy.list, ${READ_CHARACTERS_MAX}) = ${from}
    returning is_only`.execute(db)
  return rows.length === 1
}
