import { query } from './engine.ts'

type Copies = {
  table: string
  /** SQL that makes a JSON object with the columns that differ. The row is `t`. */
  changes: string
  /** SQL after `from`, which names the row `t` and determines the number of copies. */
  from: string
}

/** Inserts changed copies of rows, without their generated columns. */
export async function copyRows(
  connection: Parameters<typeof query>[0],
  { table, changes, from }: Copies,
): Promise<void> {
  const [row] = await query(
    connection,
    `select string_agg(column_name, ', ') as columns from information_schema.columns
      where table_name = '${table}' and is_generated = 'NEVER'`,
  )
  const columns = String(row?.['columns'])
  await query(
    connection,
    `insert into ${table} (${columns})
     select ${columns} from (select (jsonb_populate_record(t, ${changes})).* from ${from}) as copy`,
  )
}
