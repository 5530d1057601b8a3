import { type ClientBase, escapeIdentifier } from 'pg'
import type { TableColumns } from './snapshot-store.ts'

/** Until the transaction ends, no service can write to these tables. */
export async function lockTables(client: ClientBase, names: readonly string[]): Promise<void> {
  const list = names.map(escapeIdentifier).join(', ')
  await client.query(`lock table ${list} in share row exclusive mode`)
}

/** The first of these tables that has a row, or null. */
export async function findFilledTable(
  client: ClientBase,
  names: readonly string[],
): Promise<string | null> {
  for (const name of names) {
    const { rows } = await client.query(`select from ${escapeIdentifier(name)} limit 1`)
    if (rows.length > 0) return name
  }
  return null
}

export async function createPartitions(
  client: ClientBase,
  months: readonly string[],
): Promise<void> {
  for (const month of months) {
    await client.query('select ensure_event_partition($1::timestamptz)', [`${month}-01T00:00:00Z`])
  }
}

export function loadTableText({ name, columns }: TableColumns): string {
  return `copy ${escapeIdentifier(name)} (${columns.map(escapeIdentifier).join(', ')}) from stdin (format binary)`
}

/** Deletes the events that were archived after an earlier backup into the same folder had copied them. */
export async function deleteArchivedEvents(client: ClientBase): Promise<void> {
  await client.query(`
    delete from event e
     using (select workspace_id, max(last_seq) as last_seq from segment group by 1) as s
     where e.workspace_id = s.workspace_id and e.seq <= s.last_seq`)
}

/** Sets the sequences of identity columns to continue after the loaded rows. */
export async function continueIdentities(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ table: string; column: string; sequence: string }>(`
    select c.relname::text as "table", a.attname::text as "column",
           pg_get_serial_sequence(quote_ident(c.relname), a.attname) as sequence
      from pg_attribute a
      join pg_class c on c.oid = a.attrelid
     where a.attidentity <> '' and c.relnamespace = 'public'::regnamespace`)
  for (const { table, column, sequence } of rows) {
    const last = `select max(${escapeIdentifier(column)}) from ${escapeIdentifier(table)}`
    await client.query(`select setval($1::regclass, coalesce((${last}), 1))`, [sequence])
  }
}

/** Without statistics, the first queries would be slow. */
export async function analyzeTables(client: ClientBase): Promise<void> {
  await client.query('analyze')
}
