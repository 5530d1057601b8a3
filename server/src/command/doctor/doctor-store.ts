import { sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'

type PermissionFault = { role: string; table: string; privilege: string; isGranted: boolean }

/** Where the two roles have less than they need, or more than they may have. */
export async function listPermissionFaults(db: Queryable): Promise<PermissionFault[]> {
  const { rows } = await sql<PermissionFault>`
    select role, name as "table", privilege, not is_needed as "isGranted"
      from (values ('annals_serving', 'company', 'select', true),
                   ('annals_serving', 'chain_head', 'update', true),
                   ('annals_serving', 'event', 'insert', true),
                   ('annals_serving', 'event', 'update', false),
                   ('annals_serving', 'event', 'delete', false),
                   ('annals_serving', 'webhook_delivery', 'update', true),
                   ('annals_keeper', 'event', 'delete', true),
                   ('annals_keeper', 'event', 'insert', false),
                   ('annals_keeper', 'segment', 'insert', true)) as wanted (role, name, privilege, is_needed)
     where has_table_privilege(role, name, privilege) <> is_needed`.execute(db)
  return rows
}

type ServerSettings = {
  fsync: string
  fullPageWrites: string
  randomPageCost: number
  isReadOnly: boolean
  freeConnections: number
}

export async function readServerSettings(db: Queryable): Promise<ServerSettings> {
  const { rows } = await sql<ServerSettings>`
    select current_setting('fsync') as fsync,
           current_setting('full_page_writes') as "fullPageWrites",
           current_setting('random_page_cost')::float8 as "randomPageCost",
           pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as "isReadOnly",
           current_setting('max_connections')::int
             - current_setting('superuser_reserved_connections')::int
             - (select count(*) from pg_stat_activity where datname is not null) as "freeConnections"`.execute(
    db,
  )
  const [row] = rows
  if (!row) throw new Error('a select without a table has a row')
  return row
}

/** The workspaces with the newest events. */
export async function listNewestChains(
  db: Queryable,
  { limit }: { limit: number },
): Promise<WorkspaceId[]> {
  const { rows } = await sql<{ id: string }>`
    select workspace_id as id
      from chain_head
     where seq > 0
     order by last_id desc
     limit ${limit}`.execute(db)
  return rows.map(({ id }) => assertId<'workspace'>(id))
}

/** The nodes that renewed their rows recently, by role. */
export async function countNodes(
  db: Queryable,
  { silentMsMax }: { silentMsMax: number },
): Promise<{ role: string; nodes: number }[]> {
  const { rows } = await sql<{ role: string; nodes: number }>`
    select role, count(*) as nodes
      from node
     where seen_at > clock_timestamp() - ${silentMsMax} * interval '1 millisecond'
     group by role
     order by role`.execute(db)
  return rows
}

/** The workspaces whose chains the signer refuses to sign. */
export async function listRefusals(
  db: Queryable,
  { limit }: { limit: number },
): Promise<{ workspaceId: string; refusal: string }[]> {
  const { rows } = await sql<{ workspaceId: string; refusal: string }>`
    select workspace_id as "workspaceId", refusal
      from checkpoint
     where refusal is not null
     order by workspace_id
     limit ${limit}`.execute(db)
  return rows
}

/** The file of the segment that was cataloged first. Null if there is none. */
export async function findOldestSegment(db: Queryable): Promise<string | null> {
  const { rows } = await sql<{ objectKey: string }>`
    select object_key as "objectKey" from segment order by created_at limit 1`.execute(db)
  return rows[0]?.objectKey ?? null
}
