import { sql } from 'kysely'
import { assertId, type WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'
import { isPlan, type Plan } from '../../tenancy/plans.ts'

/** A workspace with what decides when its events leave the table. */
export type ArchivedWorkspace = { workspaceId: WorkspaceId; plan: Plan }

export async function listArchivedWorkspaces(db: Queryable): Promise<ArchivedWorkspace[]> {
  const rows = await db
    .selectFrom('workspace')
    .innerJoin('company', 'company.id', 'workspace.company_id')
    .select(['workspace.id', 'company.plan'])
    .orderBy('workspace.id')
    .execute()
  return rows.flatMap(({ id, plan }) => (isPlan(plan) ? [{ workspaceId: assertId(id), plan }] : []))
}

/**
 * Takes turns between archivers, for as long as the connection lives. Safety does not hang on it:
 * the catalog takes each run once. Two at once would only do the same work twice.
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
export type SegmentPlace = {
  workspaceId: string
  objectKey: string
  firstSeq: number
  lastSeq: number
}

/** The most recently cataloged segment, of one workspace or of all. */
export async function findNewestSegment(
  db: Queryable,
  workspaceId: WorkspaceId | null,
): Promise<SegmentPlace | null> {
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

/** The lowest number that is still in the table, or null. */
export async function readFirstHotSeq(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<number | null> {
  const { rows } = await sql<{ seq: number | null }>`
    select min(seq) as seq from event where workspace_id = ${workspaceId}`.execute(db)
  return rows[0]?.seq ?? null
}

/** Up to where webhooks need nothing any more: not for a delivery to make, nor for one to send. */
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

/** Removes a run of a chain from the table. The catalog names it; this is asked again here. */
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

/** True when the partition was empty and is gone. By the owner of the table. */
export async function dropPartitionIfEmpty(db: Queryable, name: string): Promise<boolean> {
  // Looked at first, without the lock that writers would have to wait for.
  const { rows: found } = await sql`select 1 from ${sql.table(name)} limit 1`.execute(db)
  if (found.length > 0) return false
  const { rows } = await sql<{ isGone: boolean }>`
    select drop_event_partition_if_empty(${name}::regclass) as "isGone"`.execute(db)
  return rows[0]?.isGone === true
}
