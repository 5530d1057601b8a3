import { sql } from 'kysely'
import { assertId, type CompanyId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { isPlan, type Plan } from '../../tenancy/plans.ts'

/** A workspace with its plan, which determines when its events are archived. */
export type ArchivedWorkspace = { workspaceId: WorkspaceId; companyId: CompanyId; plan: Plan }

export async function listArchivedWorkspaces(db: Queryable): Promise<ArchivedWorkspace[]> {
  const rows = await db
    .selectFrom('workspace')
    .innerJoin('company', 'company.id', 'workspace.company_id')
    .select(['workspace.id', 'workspace.company_id', 'company.plan'])
    .orderBy('workspace.id')
    .execute()
  return rows.flatMap(({ id, company_id: companyId, plan }) =>
    isPlan(plan) ? [{ workspaceId: assertId(id), companyId: assertId(companyId), plan }] : [],
  )
}

/**
 * Takes an advisory lock, which lasts as long as the connection. It isn't needed for safety, because the
 * catalog accepts each run only once. It only avoids that two archivers do the same work.
 */
export async function tryLockArchive(db: Queryable, workspaceId: WorkspaceId): Promise<boolean> {
  const { rows } = await sql<{ isLocked: boolean }>`
    select pg_try_advisory_lock(hashtextextended(${`annals-archive/${workspaceId}`}, 0)) as "isLocked"`.execute(
    db,
  )
  return rows[0]?.isLocked === true
}

export async function unlockArchive(db: Queryable, workspaceId: WorkspaceId): Promise<void> {
  await sql`
    select pg_advisory_unlock(hashtextextended(${`annals-archive/${workspaceId}`}, 0))`.execute(db)
}

/** The fields of a segment that are needed to find its file. */
type SegmentLocation = {
  workspaceId: string
  objectKey: string
  firstSeq: number
  lastSeq: number
}

/** The most recently cataloged segment, of one workspace or of all. */
export async function findNewestSegment(
  db: Queryable,
  workspaceId: WorkspaceId | null,
): Promise<SegmentLocation | null> {
  const newest = db
    .selectFrom('segment')
    .select([
      'workspace_id as workspaceId',
      'object_key as objectKey',
      'first_seq as firstSeq',
      'last_seq as lastSeq',
    ])
    .limit(1)
  const row = await (
    workspaceId === null
      ? newest.orderBy('created_at', 'desc').orderBy('last_seq', 'desc')
      : newest.where('workspace_id', '=', workspaceId).orderBy('last_seq', 'desc')
  ).executeTakeFirst()
  return row ?? null
}

/** The lowest seq that is still in the table, or null if there is none. */
export async function readFirstHotSeq(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<number | null> {
  const { rows } = await sql<{ seq: number | null }>`
    select min(seq) as seq from event where workspace_id = ${workspaceId}`.execute(db)
  return rows[0]?.seq ?? null
}

/** The last seq that no webhook needs: all deliveries up to it have been created and are finished. */
export async function readUnneededSeq(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<number | null> {
  const { rows } = await sql<{ seq: number | null }>`
    select least(
      (select min(seen_seq) from webhook
        where workspace_id = ${workspaceId} and status = 'ENABLED'),
      (select min(event_seq) - 1 from webhook_delivery
        where workspace_id = ${workspaceId}
          and status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED'))) as seq`.execute(db)
  return rows[0]?.seq ?? null
}

/** Deletes a run of a chain from the table. The statement checks again that the run is in the catalog. */
export async function deleteArchivedRun(
  db: Queryable,
  { workspaceId, fromSeq, toSeq }: { workspaceId: WorkspaceId; fromSeq: number; toSeq: number },
): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from event
     where workspace_id = ${workspaceId} and seq >= ${fromSeq} and seq <= ${toSeq}
       and seq <= (select max(last_seq) from segment where workspace_id = ${workspaceId})`.execute(
    db,
  )
  return Number(numAffectedRows ?? 0n)
}

/** Partitions of months that have passed, oldest first: `event_2026_01` and the like. */
export async function listPastPartitions(db: Queryable, now: Date): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select c.relname as name
      from pg_inherits i
      join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'event'::regclass
       and c.relname ~ '^event_[0-9]{4}_[0-9]{2}$'
       and c.relname < 'event_' || to_char(${now}::timestamptz at time zone 'UTC', 'YYYY_MM')
     order by c.relname`.execute(db)
  return rows.map(({ name }) => name)
}

/** Returns whether it dropped the partition. Only the table's owner can call it. */
export async function dropPartitionIfEmpty(db: Queryable, name: string): Promise<boolean> {
  // Checks first without a lock, because writers would have to wait for the lock.
  const { rows: found } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(db)
  if (found.length > 0) return false
  const { rows } = await sql<{ isGone: boolean }>`
    select drop_event_partition_if_empty(${name}::regclass) as "isGone"`.execute(db)
  return rows[0]?.isGone === true
}
