import { type Selectable, sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import {
  assertId,
  type CompanyId,
  newId,
  type UserId,
  type WorkspaceId,
} from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Tables } from '../../platform/pg/tables.ts'
import type { VerifyOutcome } from './verify-outcome.ts'
import {
  type Covered,
  VERIFY_STATUSES,
  type VerifyPeriod,
  type VerifyRun,
  type VerifyRunId,
} from './verify-run.ts'

/** If a run's node has been silent for this long, another node takes the run. */
const ABANDONED_MS = 15_000
/** The `beat_at` of a run that no node has taken yet. */
const NEVER = new Date(0)
/** New runs delete older ones beyond this limit. With one run per day, this is more than a year. */
export const RUNS_KEPT_PER_WORKSPACE = 400

type NewRun = {
  companyId: CompanyId
  workspaceId: WorkspaceId
  total: number
  /** Null for the whole chain. */
  period?: VerifyPeriod | null
  /** Null for the schedule. */
  createdBy: UserId | null
  now: Date
}

/** A workspace has at most one open run at a time. A second one throws a `conflict`. */
export async function insertVerifyRun(db: Queryable, run: NewRun): Promise<VerifyRun> {
  const inserted = await tryInsertVerifyRun(db, run)
  if (inserted) return inserted
  throw new ApiError('conflict', {
    message: 'This workspace is already being verified. Wait for the result, or cancel that run.',
  })
}

/** Returns null if the workspace has an open run. */
export async function tryInsertVerifyRun(db: Queryable, run: NewRun): Promise<VerifyRun | null> {
  const row = await db
    .insertInto('verify_run')
    .values({
      company_id: run.companyId,
      id: newId<'verify-run'>(run.now.getTime()),
      workspace_id: run.workspaceId,
      status: 'RUNNING',
      checked: 0,
      total: run.total,
      from_at: run.period?.from ?? null,
      to_at: run.period?.to ?? null,
      is_scheduled: run.createdBy === null,
      created_by: run.createdBy,
      created_at: run.now,
      beat_at: NEVER,
    })
    .onConflict((target) => target.doNothing())
    .returningAll()
    .executeTakeFirst()
  if (!row) return null
  await correctLaterRuns(db, run)
  await deleteOldRuns(db, run.workspaceId)
  return toRun(row)
}

/** Otherwise, runs created while the clock was ahead would stay the newest. */
async function correctLaterRuns(db: Queryable, { workspaceId, now }: NewRun): Promise<void> {
  await sql`
    update verify_run
       set created_at = ${now}::timestamptz - interval '1 millisecond'
     where workspace_id = ${workspaceId} and created_at > ${now}`.execute(db)
}

/** Keeps the last verdict on the whole chain, because it decides whether the dashboard shows a warning. */
async function deleteOldRuns(db: Queryable, workspaceId: WorkspaceId): Promise<void> {
  await sql`
    delete from verify_run
     where workspace_id = ${workspaceId} and status <> 'RUNNING'
       and created_at <= (
         select created_at from verify_run where workspace_id = ${workspaceId}
          order by created_at desc offset ${RUNS_KEPT_PER_WORKSPACE} limit 1)
       and id is distinct from (
         select id from verify_run
          where workspace_id = ${workspaceId} and ${IS_VERDICT}
          order by created_at desc, id desc limit 1)`.execute(db)
}

/** Whether a run changes what is known about the chain. A period that holds doesn't repair the rest of it. */
const IS_VERDICT = sql`(status = 'BROKEN' or (status = 'HOLDS' and from_at is null))`

export async function findVerifyRun(
  db: Queryable,
  { companyId, id }: { companyId: CompanyId; id: VerifyRunId },
): Promise<VerifyRun | null> {
  const row = await db
    .selectFrom('verify_run')
    .selectAll()
    .where('company_id', '=', companyId)
    .where('id', '=', id)
    .executeTakeFirst()
  return row ? toRun(row) : null
}

/** The runs of these workspaces, newest first. `before` is the last run of the previous page. */
export async function listRecentVerifyRuns(
  db: Queryable,
  {
    companyId,
    workspaceIds,
    before,
    limit,
  }: {
    companyId: CompanyId
    workspaceIds: readonly WorkspaceId[]
    before: VerifyRun | null
    limit: number
  },
): Promise<VerifyRun[]> {
  if (workspaceIds.length === 0) return []
  const rows = await db
    .selectFrom('verify_run')
    .selectAll()
    .where('company_id', '=', companyId)
    .where('workspace_id', 'in', workspaceIds)
    .$if(before !== null, (select) =>
      select.where(
        sql<boolean>`(created_at, id) < (${before?.createdAt}::timestamptz, ${before?.id}::uuid)`,
      ),
    )
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toRun)
}

/** The newest run of each of these workspaces. Runs of a period count only while they are running. */
export async function listLastRuns(
  db: Queryable,
  { companyId, workspaceIds }: { companyId: CompanyId; workspaceIds: readonly WorkspaceId[] },
): Promise<VerifyRun[]> {
  const { rows } = await sql<Selectable<Tables['verify_run']>>`
    select distinct on (workspace_id) *
      from verify_run
     where company_id = ${companyId} and workspace_id = any (${workspaceIds}::uuid[])
       and (from_at is null or status = 'RUNNING')
     order by workspace_id, created_at desc, id desc`.execute(db)
  return rows.map(toRun)
}

/**
 * The newest verdict of each of these workspaces, if it is BROKEN. A later run without a verdict on the
 * whole chain, such as a canceled one, doesn't repair it.
 */
export async function listBrokenRuns(
  db: Queryable,
  { companyId, workspaceIds }: { companyId: CompanyId; workspaceIds: readonly WorkspaceId[] },
): Promise<VerifyRun[]> {
  const { rows } = await sql<Selectable<Tables['verify_run']>>`
    select * from (
      select distinct on (workspace_id) *
        from verify_run
       where company_id = ${companyId} and workspace_id = any (${workspaceIds}::uuid[])
         and ${IS_VERDICT}
       order by workspace_id, created_at desc, id desc) as verdict
     where status = 'BROKEN'
     order by created_at desc, id desc`.execute(db)
  return rows.map(toRun)
}

/** The newest verdict on a chain. Null before the first one. */
export async function findLastVerdict(
  db: Queryable,
  workspaceId: WorkspaceId,
): Promise<VerifyRunId | null> {
  const { rows } = await sql<{ id: string }>`
    select id from verify_run
     where workspace_id = ${workspaceId} and ${IS_VERDICT}
     order by created_at desc, id desc limit 1`.execute(db)
  return rows[0] ? assertId(rows[0].id) : null
}

/**
 * Claims a run that is waiting for a node, or whose node is gone. A run whose node was last seen in the future was
 * claimed while the clock was ahead. Runs that members requested come first, and never wait for scheduled ones.
 * Among them, the company whose last run was longest ago comes first. A company has one run at a time, in order of
 * creation: only its oldest can be claimed, so two nodes can't claim two of them at the same time.
 */
export async function claimVerifyRun(
  db: Queryable,
  now: Date,
  { mayBeScheduled = true }: { mayBeScheduled?: boolean } = {},
): Promise<VerifyRun | null> {
  const abandonedBefore = new Date(now.getTime() - ABANDONED_MS)
  const aliveUntil = new Date(now.getTime() + ABANDONED_MS)
  const { rows } = await sql<Selectable<Tables['verify_run']>>`
    update verify_run set beat_at = ${now}
     where (workspace_id, id) = (
       select next.workspace_id, next.id
         from verify_run as next
        where next.status = 'RUNNING'
          and (next.beat_at < ${abandonedBefore} or next.beat_at > ${aliveUntil})
          and (${mayBeScheduled} or not next.is_scheduled)
          and not exists (
            select from verify_run as other
             where other.company_id = next.company_id and other.status = 'RUNNING'
               and other.is_scheduled <= next.is_scheduled
               and (other.beat_at between ${abandonedBefore} and ${aliveUntil}
                    or (other.is_scheduled, other.created_at, other.id)
                       < (next.is_scheduled, next.created_at, next.id)))
        order by next.is_scheduled,
                 (select last.beat_at
                    from verify_run as last
                   where last.company_id = next.company_id and last.beat_at > ${NEVER}
                   order by last.created_at desc limit 1) nulls first,
                 next.created_at
        limit 1 for update of next skip locked)
    returning *`.execute(db)
  return rows[0] ? toRun(rows[0]) : null
}

/** Renews the leases of a node's runs. Returns those that are still running. The others were canceled. */
export async function updateVerifyProgress(
  db: Queryable,
  runs: readonly Pick<VerifyRun, 'workspaceId' | 'id' | 'checked' | 'total'>[],
  now: Date,
): Promise<Set<VerifyRunId>> {
  const { rows } = await sql<{ id: string }>`
    update verify_run as run
       set checked = progress.checked, total = progress.total, beat_at = ${now}
      from unnest(${runs.map(({ workspaceId }) => workspaceId)}::uuid[],
                  ${runs.map(({ id }) => id)}::uuid[],
                  ${runs.map(({ checked }) => checked)}::bigint[],
                  ${runs.map(({ total }) => total)}::bigint[])
             as progress (workspace_id, id, checked, total)
     where run.workspace_id = progress.workspace_id and run.id = progress.id
       and run.status = 'RUNNING'
    returning run.id`.execute(db)
  return new Set(rows.map(({ id }) => assertId(id)))
}

/** Returns false if the run had already ended. */
export async function finishVerifyRun(
  db: Queryable,
  { workspaceId, id, total }: Pick<VerifyRun, 'workspaceId' | 'id' | 'total'>,
  end: VerifyOutcome,
  now: Date,
): Promise<boolean> {
  const { range = null, checkpoint = null } = end.covered ?? {}
  const { numUpdatedRows } = await db
    .updateTable('verify_run')
    .set({
      status: end.status,
      ...(end.checked !== null && { checked: end.checked }),
      total,
      verdict: end.verdict,
      bad_seq: end.badSeq,
      bad_event_id: end.badEventId,
      first_seq: range?.firstSeq ?? null,
      last_seq: range?.lastSeq ?? null,
      checkpoint_size: checkpoint?.size ?? null,
      checkpoint_root: checkpoint?.root ?? null,
      checkpoint_note: checkpoint?.note ?? null,
      checkpoint_vkey: checkpoint?.vkey ?? null,
      checkpoint_signed_at: checkpoint?.signedAt ?? null,
      finished_at: now,
    })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('status', '=', 'RUNNING')
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

function toRun(row: Selectable<Tables['verify_run']>): VerifyRun {
  return {
    id: assertId(row.id),
    companyId: assertId(row.company_id),
    workspaceId: assertId(row.workspace_id),
    status: VERIFY_STATUSES.find((status) => status === row.status) ?? 'FAILED',
    checked: row.checked,
    total: row.total,
    period: row.from_at && row.to_at && { from: row.from_at, to: row.to_at },
    verdict: row.verdict,
    badSeq: row.bad_seq,
    badEventId: row.bad_event_id,
    covered: row.status === 'HOLDS' ? coveredBy(row) : null,
    isScheduled: row.is_scheduled,
    createdBy: row.created_by === null ? null : assertId(row.created_by),
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  }
}

function coveredBy(row: Selectable<Tables['verify_run']>): Covered {
  const { first_seq: firstSeq, last_seq: lastSeq } = row
  return {
    range: firstSeq === null || lastSeq === null ? null : { firstSeq, lastSeq },
    checkpoint: checkpointOf(row),
  }
}

function checkpointOf(row: Selectable<Tables['verify_run']>): Covered['checkpoint'] {
  const { checkpoint_size: size, checkpoint_root: root, checkpoint_note: note } = row
  const { checkpoint_vkey: vkey, checkpoint_signed_at: signedAt } = row
  if (size === null || root === null || note === null) return null
  return vkey === null || signedAt === null ? null : { size, root, note, vkey, signedAt }
}
