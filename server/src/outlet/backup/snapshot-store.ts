import { sql } from 'kysely'
import { type ClientBase, escapeIdentifier, escapeLiteral } from 'pg'
import type { Queryable } from '../../platform/pg/database.ts'
import type { BackedUpHead, EventRun } from './event-coverage.ts'

/** A table and its columns, except generated ones. */
export type TableColumns = { name: string; columns: string[] }

type SchemaMigration = { version: number; name: string; checksum: string }

/** Removes timeouts, because a backup may take hours, and reads ranges of events by index, whatever the statistics. */
export async function prepareSession(client: ClientBase): Promise<void> {
  await client.query(
    `select set_config(name, '0', false) from pg_settings
      where name in ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout',
                     'lock_timeout')`,
  )
  await client.query('set enable_seqscan = off; set enable_sort = off; set enable_bitmapscan = off')
}

/** Starts a transaction whose snapshot other connections can use until it ends. */
export async function exportSnapshot(client: ClientBase): Promise<{ id: string; takenAt: Date }> {
  await client.query('begin isolation level repeatable read read only')
  const { rows } = await client.query<{ id: string; takenAt: Date }>(
    'select pg_export_snapshot() as id, now() as "takenAt"',
  )
  const [snapshot] = rows
  if (!snapshot) throw new Error('a select without a table has a row')
  return snapshot
}

export async function importSnapshot(client: ClientBase, id: string): Promise<void> {
  await client.query(
    `begin isolation level repeatable read read only; set transaction snapshot ${escapeLiteral(id)}`,
  )
}

export async function useSnapshot(trx: Queryable, id: string): Promise<void> {
  await sql`set transaction snapshot ${sql.lit(id)}`.execute(trx)
}

/**
 * Every table, except unlogged ones, which say what is running now. Partitions belong to their parent table.
 */
export async function listTables(client: ClientBase): Promise<TableColumns[]> {
  const { rows } = await client.query<TableColumns>(`
    select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
      from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
       and c.relpersistence = 'p' and not c.relispartition and a.attgenerated = ''
     group by c.relname
     order by c.relname`)
  return rows
}

/**
 * `schema_migration`: the target has its own. `signer_lease`: it belongs to a running node. `ledger_move`: it says
 * whether this database can be used.
 */
export const LEFT_OUT = ['schema_migration', 'signer_lease', 'ledger_move']

/** The tables that a table refers to. */
export async function listReferences(
  client: ClientBase,
): Promise<{ name: string; refersTo: string }[]> {
  const { rows } = await client.query<{ name: string; refersTo: string }>(`
    select distinct c.relname::text as name, r.relname::text as "refersTo"
      from pg_constraint f
      join pg_class c on c.oid = f.conrelid
      join pg_class r on r.oid = f.confrelid
     where f.contype = 'f' and c.relnamespace = 'public'::regnamespace and c.oid <> r.oid`)
  return rows
}

/** The months that have a partition, oldest first. */
export async function listPartitionMonths(client: ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ month: string }>(`
    select replace(substr(c.relname, 7), '_', '-') as month
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'event'::regclass and c.relname ~ '^event_\\d{4}_\\d{2}$'
     order by 1`)
  return rows.map(({ month }) => month)
}

export async function listMigrations(client: ClientBase): Promise<SchemaMigration[]> {
  const { rows } = await client.query<SchemaMigration>(
    'select version, name, checksum from schema_migration order by version',
  )
  return rows
}

export async function listHeads(client: ClientBase): Promise<BackedUpHead[]> {
  const { rows } = await client.query<BackedUpHead>(`
    select h.workspace_id as "workspaceId", h.seq, h.hash, coalesce(s.last_seq, 0) as "archivedSeq"
      from chain_head h
      left join (select workspace_id, max(last_seq) as last_seq from segment group by 1) as s
        on s.workspace_id = h.workspace_id
     order by h.workspace_id`)
  return rows
}

export async function readIdentities(
  client: ClientBase,
): Promise<{ archiveId: string | null; keyFingerprint: string | null }> {
  const { rows } = await client.query<{ archiveId: string | null; keyFingerprint: string | null }>(`
    select (select archive_id from archive_identity) as "archiveId",
           (select encode(fingerprint, 'hex') from secret_key_identity) as "keyFingerprint"`)
  return rows[0] ?? { archiveId: null, keyFingerprint: null }
}

/** An archived file of events. */
export type CatalogedFile = { objectKey: string; bytes: number; sha256: string }

export async function listCatalog(client: ClientBase): Promise<CatalogedFile[]> {
  const { rows } = await client.query<CatalogedFile>(`
    select object_key as "objectKey", bytes, encode(sha256, 'hex') as sha256
      from segment order by workspace_id, first_seq`)
  return rows
}

/** The first of these events that the table doesn't have with this hash, or null. */
export async function findOtherEvent(
  client: ClientBase,
  ends: readonly Pick<EventRun, 'workspaceId' | 'last' | 'lastHash'>[],
): Promise<{ workspaceId: string; seq: number } | null> {
  const { rows } = await client.query<{ workspaceId: string; seq: number }>(
    `select r.workspace_id as "workspaceId", r.seq
       from unnest($1::uuid[], $2::bigint[], $3::text[]) as r (workspace_id, seq, hash)
       left join lateral (select encode(e.hash, 'hex') as hash from event e
                           where e.workspace_id = r.workspace_id and e.seq = r.seq) as e on true
      where e.hash is distinct from r.hash
      limit 1`,
    [
      ends.map(({ workspaceId }) => workspaceId),
      ends.map(({ last }) => last),
      ends.map(({ lastHash }) => lastHash),
    ],
  )
  return rows[0] ?? null
}

/** The columns that `readRunRow` reads. */
const RUN_COLUMNS = ['workspace_id', 'seq', 'hash']

/** The columns of an event, with those that identify it first. */
export function eventColumns(columns: readonly string[]): string[] {
  return [...RUN_COLUMNS, ...columns.filter((name) => !RUN_COLUMNS.includes(name))]
}

/** The sequence number and the hash of a row with `eventColumns`. Each column starts with its length. */
export function readRunRow(row: Buffer): { seq: number; hash: string } {
  const seq = row.readUInt32BE(26) * 2 ** 32 + row.readUInt32BE(30)
  return { seq, hash: row.toString('hex', 38, 70) }
}

export function copyRunText(
  columns: readonly string[],
  { workspaceId, first, last }: Pick<EventRun, 'workspaceId' | 'first' | 'last'>,
): string {
  const list = columns.map(escapeIdentifier).join(', ')
  return `copy (select ${list} from event
                 where workspace_id = ${escapeLiteral(workspaceId)} and seq between ${first} and ${last}
                 order by seq) to stdout (format binary)`
}

export function copyTableText({ name, columns }: TableColumns): string {
  return `copy ${escapeIdentifier(name)} (${columns.map(escapeIdentifier).join(', ')}) to stdout (format binary)`
}
