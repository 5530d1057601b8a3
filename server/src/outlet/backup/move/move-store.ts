import { sql } from 'kysely'
import { type ClientBase, escapeIdentifier, escapeLiteral } from 'pg'
import { type ChainHead, EMPTY_HEAD } from '../../../ledger/event.ts'
import { assertId, type WorkspaceId } from '../../../platform/id.ts'
import { type Queryable, SQLSTATE, sqlStateOf } from '../../../platform/pg/database.ts'
import { type LedgerMove, readLedgerMove } from '../../../platform/node/moved-ledger.ts'
import type { EventRun } from '../event-coverage.ts'
import { LEFT_OUT, listTables, type TableColumns } from '../snapshot-store.ts'

export { type LedgerMove, readLedgerMove }

/** The key of the advisory lock in `refuse_moved_ledger()`. */
const STOP_LOCK = 4_207_003
/** The key of the one that keeps two movers from using one target. */
const TARGET_LOCK = 4_207_004
const TRIGGER = 'refuse_moved_ledger'
/** Writers wait behind a statement that waits for its lock, so it doesn't wait for long. */
const TRIGGER_LOCK_MS_MAX = 1_000
const TRIGGER_TRIES_MAX = 20

export async function writeLedgerMove(
  client: ClientBase,
  { id, state, other }: Omit<LedgerMove, 'changedAt'>,
): Promise<void> {
  await client.query(
    `insert into ledger_move (id, state, other) values ($1, $2, $3)
     on conflict (is_only) do update
        set id = excluded.id, state = excluded.state, other = excluded.other, changed_at = now()`,
    [id, state, other],
  )
}

/** Compare-and-set: false if the ledger is not in this move anymore. */
export async function markLeft(client: ClientBase, id: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `update ledger_move set state = 'LEFT', changed_at = now() where id = $1 and state = 'LEAVING'`,
    [id],
  )
  return rowCount === 1
}

export async function deleteLedgerMove(client: ClientBase, id: string): Promise<void> {
  await client.query('delete from ledger_move where id = $1', [id])
}

/** Compare-and-set: false if the move is not in this state anymore. From then on, its mover can't complete it. */
export async function withdrawMove(
  client: ClientBase,
  { id, state }: Pick<LedgerMove, 'id' | 'state'>,
): Promise<boolean> {
  const { rowCount } = await client.query('delete from ledger_move where id = $1 and state = $2', [
    id,
    state,
  ])
  return rowCount === 1
}

/** From now on, every write asks whether the ledger is being moved. Transactions that have written before have ended. */
export async function addRefusals(client: ClientBase): Promise<void> {
  for (const { name, isRefusing } of await listTriggerTables(client)) {
    if (isRefusing) continue
    await repeatLocked(
      client,
      `create trigger ${TRIGGER}
       before insert or update or delete or truncate on ${escapeIdentifier(name)}
       for each statement execute function ${TRIGGER}()`,
    )
  }
}

export async function removeRefusals(client: ClientBase): Promise<void> {
  for (const { name, isRefusing } of await listTriggerTables(client)) {
    if (!isRefusing) continue
    await repeatLocked(client, `drop trigger ${TRIGGER} on ${escapeIdentifier(name)}`)
  }
}

/** Not `schema_migration`, so that the database can still be migrated, and not the table that the trigger reads. */
async function listTriggerTables(
  client: ClientBase,
): Promise<{ name: string; isRefusing: boolean }[]> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname::text as name from pg_trigger t join pg_class c on c.oid = t.tgrelid where t.tgname = $1`,
    [TRIGGER],
  )
  const refusing = new Set(rows.map(({ name }) => name))
  return (await listTables(client))
    .filter(({ name }) => name !== 'schema_migration' && name !== 'ledger_move')
    .map(({ name }) => ({ name, isRefusing: refusing.has(name) }))
}

async function repeatLocked(client: ClientBase, statement: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await client.query(`set lock_timeout = ${TRIGGER_LOCK_MS_MAX}; ${statement}`)
      return
    } catch (error) {
      const isBusy = sqlStateOf(error) === SQLSTATE.LOCK_NOT_AVAILABLE
      if (!isBusy || tries === TRIGGER_TRIES_MAX) throw error
    } finally {
      await client.query('set lock_timeout = 0').catch(() => {})
    }
  }
}

/** From here on, all writes fail. Returns when the running ones have ended, or throws after the timeout. */
export async function takeStopLock(client: ClientBase, waitMsMax: number): Promise<void> {
  await client.query(`set statement_timeout = 0; set lock_timeout = ${waitMsMax}`)
  await client.query(`select pg_advisory_lock(${STOP_LOCK})`)
}

export class TargetBusyError extends Error {
  override name = 'TargetBusyError'
}

/** Until the connection ends. */
export async function takeTargetLock(client: ClientBase, waitMsMax: number): Promise<void> {
  await client.query(`set lock_timeout = ${waitMsMax}`)
  try {
    await client.query(`select pg_advisory_lock(${TARGET_LOCK})`)
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.LOCK_NOT_AVAILABLE) throw error
    throw new TargetBusyError('the lock is taken', { cause: error })
  }
  await client.query('set lock_timeout = 0')
}

/** PostgreSQL ends this connection when nothing was sent on it for that long. */
export async function limitIdleTime(client: ClientBase, idleMsMax: number): Promise<void> {
  await client.query(`set idle_session_timeout = ${Math.max(1, Math.floor(idleMsMax))}`)
}

/** A table with its primary key, and whether a foreign key starts or ends there. */
export type MovedTable = TableColumns & { key: string[]; hasReferences: boolean }

/** All tables that are copied, except that of events. */
export async function listMovedTables(client: ClientBase): Promise<MovedTable[]> {
  const { rows } = await client.query<{ name: string; key: string[]; hasReferences: boolean }>(`
    select c.relname::text as name,
           array(select a.attname::text
                   from pg_index i
                  cross join lateral unnest(i.indkey) with ordinality as k (attnum, nth)
                   join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
                  where i.indrelid = c.oid and i.indisprimary and k.nth <= i.indnkeyatts
                  order by k.nth) as key,
           exists (select from pg_constraint f
                    where f.contype = 'f' and c.oid in (f.conrelid, f.confrelid)) as "hasReferences"
      from pg_class c
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')`)
  const keys = new Map(rows.map((row) => [row.name, row]))
  return (await listTables(client))
    .filter(({ name }) => name !== 'event' && !LEFT_OUT.includes(name))
    .map((table) => ({ key: [], hasReferences: true, ...keys.get(table.name), ...table }))
}

/** Starts a transaction on a fixed state. Rows that it doesn't see have a transaction number from this one on. */
export async function beginBaseline(client: ClientBase): Promise<string> {
  await client.query('begin isolation level repeatable read read only')
  const { rows } = await client.query<{ horizon: string }>(
    `select (pg_snapshot_xmin(pg_current_snapshot())::text::numeric % 4294967296)::text as horizon`,
  )
  const [row] = rows
  if (!row) throw new Error('a select without a table has a row')
  return row.horizon
}

/**
 * The rows that were added or changed since `beginBaseline`, and possibly a few others. PostgreSQL keeps the number of
 * the transaction that wrote a row. Numbers wrap around, so only their distance from the current one is compared.
 */
export function copyChangedText({ name, columns }: TableColumns, horizon: string): string {
  const list = columns.map(escapeIdentifier).join(', ')
  return `copy (select ${list} from ${escapeIdentifier(name)}
                 where age(xmin) <= age(${escapeLiteral(horizon)}::xid)) to stdout (format binary)`
}

export function copyKeysText({ name, key }: MovedTable): string {
  const list = key.map(escapeIdentifier).join(', ')
  return `copy (select ${list} from ${escapeIdentifier(name)}) to stdout (format binary)`
}

/** An empty temporary table with some columns of another. */
export async function createStage(
  client: ClientBase,
  stage: string,
  { name, columns }: TableColumns,
): Promise<void> {
  const list = columns.map(escapeIdentifier).join(', ')
  await client.query(
    `create temp table ${stage} on commit drop as select ${list} from ${escapeIdentifier(name)} with no data`,
  )
}

export async function dropStage(client: ClientBase, stage: string): Promise<void> {
  await client.query(`drop table ${stage}`)
}

const matching = (key: readonly string[]) =>
  key.map((column) => `t.${escapeIdentifier(column)} = s.${escapeIdentifier(column)}`).join(' and ')

export async function deleteStaged(
  client: ClientBase,
  stage: string,
  { name, key }: MovedTable,
): Promise<void> {
  await client.query(
    `delete from ${escapeIdentifier(name)} t using ${stage} s where ${matching(key)}`,
  )
}

export async function deleteUnlisted(
  client: ClientBase,
  stage: string,
  { name, key }: MovedTable,
): Promise<void> {
  await client.query(
    `delete from ${escapeIdentifier(name)} t
      where not exists (select from ${stage} s where ${matching(key)})`,
  )
}

export async function insertStaged(
  client: ClientBase,
  stage: string,
  { name, columns }: MovedTable,
): Promise<void> {
  const list = columns.map(escapeIdentifier).join(', ')
  await client.query(
    `insert into ${escapeIdentifier(name)} (${list}) overriding system value select ${list} from ${stage}`,
  )
}

export async function countRows(client: ClientBase, name: string): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    `select count(*) as n from ${escapeIdentifier(name)}`,
  )
  return rows[0]?.n ?? 0
}

export async function emptyTables(client: ClientBase, names: readonly string[]): Promise<void> {
  await client.query(`truncate ${names.map(escapeIdentifier).join(', ')}`)
}

export async function analyzeOnly(client: ClientBase, names: readonly string[]): Promise<void> {
  await client.query(`analyze ${names.map(escapeIdentifier).join(', ')}`)
}

/** The last event of each of these workspaces in the table. */
export async function listLastEvents(
  client: ClientBase,
  workspaceIds: readonly string[],
): Promise<Pick<EventRun, 'workspaceId' | 'last' | 'lastHash'>[]> {
  const { rows } = await client.query<Pick<EventRun, 'workspaceId' | 'last' | 'lastHash'>>(
    `select w.id as "workspaceId", e.seq as last, encode(e.hash, 'hex') as "lastHash"
       from unnest($1::uuid[]) as w (id)
      cross join lateral (select seq, hash from event
                           where workspace_id = w.id order by seq desc limit 1) as e`,
    [workspaceIds],
  )
  return rows
}

/** What a login may do in a database, before anything is created there. */
export type TargetRights = {
  user: string
  database: string
  isReadOnly: boolean
  mayCreate: boolean
  mayCreateRoles: boolean
  lackingRoles: string[]
  /** A table that Annals didn't create. */
  foreignTable: string | null
  /** An Annals table that belongs to another login. */
  foreignOwner: string | null
}

export async function readTargetRights(client: ClientBase): Promise<TargetRights> {
  const { rows } = await client.query<TargetRights>(`
    select current_user::text as user, current_database()::text as database,
           pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as "isReadOnly",
           coalesce((select has_schema_privilege(oid, 'create') from pg_namespace where nspname = 'public'), false)
             as "mayCreate",
           (select rolsuper or rolcreaterole from pg_roles where rolname = current_user) as "mayCreateRoles",
           array(select wanted from unnest(array['annals_serving', 'annals_keeper']) as wanted
                  where not exists (
                    select from pg_roles r
                     where r.rolname = wanted
                       and pg_has_role(r.oid, case when current_setting('server_version_num')::int >= 160000
                                                   then 'set' else 'member' end))) as "lackingRoles",
           (select c.relname::text from pg_class c
             where c.relnamespace = to_regnamespace('public') and c.relkind in ('r', 'p', 'v', 'm', 'f')
               and to_regclass('public.schema_migration') is null
             order by 1 limit 1) as "foreignTable",
           (select pg_get_userbyid(c.relowner)::text from pg_class c
             where c.oid = to_regclass('public.chain_head') and not pg_has_role(c.relowner, 'usage'))
             as "foreignOwner"`)
  const [row] = rows
  if (!row) throw new Error('a select without a table has a row')
  return row
}

/** A node renews its row every 3 seconds, and is dead after 9. */
export async function countRunningNodes(client: ClientBase): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    `select count(*) as n from node where seen_at > clock_timestamp() - interval '9 seconds'`,
  )
  return rows[0]?.n ?? 0
}

/** Where the archived part of a chain ends, as the catalog says. */
export async function readArchivedHead(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<ChainHead> {
  const { rows } = await sql<{ seq: number; hash: string; lastId: string }>`
    select last_seq as seq, encode(last_hash, 'hex') as hash, last_id as "lastId"
      from segment where workspace_id = ${workspaceId} order by last_seq desc limit 1`.execute(db)
  const [row] = rows
  return row ? { ...row, lastId: assertId<'event'>(row.lastId) } : EMPTY_HEAD
}
