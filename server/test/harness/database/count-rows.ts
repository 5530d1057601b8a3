import { sql } from 'kysely'
import type { Queryable } from '../../../src/platform/pg/database.ts'

/** The result of a read, and how many index entries of a table it needs. */
export async function countRows<T>(
  db: Queryable,
  table: 'event' | 'webhook_delivery',
  read: (trx: Queryable) => Promise<T>,
): Promise<[T, number]> {
  const snapshot = db.transaction().setIsolationLevel('repeatable read')
  return await snapshot.execute(async (trx) => {
    const before = await countReturned(trx, table)
    const result = await read(trx)
    return [result, (await countReturned(trx, table)) - before]
  })
}

async function countReturned(trx: Queryable, table: string): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select coalesce(sum(pg_stat_get_xact_tuples_returned(i.indexrelid)), 0)::bigint as count
      from pg_index as i
     where i.indrelid = ${table}::regclass
        or i.indrelid in (select relid from pg_partition_tree(${table}::regclass))`.execute(trx)
  return rows[0]?.count ?? 0
}
