import { type Selectable, sql } from 'kysely'
import { ApiError } from '../../errors.ts'
import {
  assertId,
  type CompanyId,
  newId,
  type UserId,
  type WorkspaceId,
} from '../../platform/id.ts'
import { type Queryable, sqlStateOf, SQLSTATE } from '../../platform/pg/database.ts'
import type { Tables } from '../../platform/pg/tables.ts'
import type { VerifyOutcome } from './verify-outcome.ts'
import { VERIFY_STATUSES, type VerifyRun, type VerifyRunId } from './verify-run.ts'

/** If a run's node has been silent for this long, another node takes the run. */
const ABANDONED_MS = 15_000
/** The `beat_at` of a run that no node has taken yet. */
const NEVER = new Date(0)
/** New runs delete older ones beyond this limit. */
const RUNS_KEPT_PER_COMPANY = 1_000

/** A workspace has at most one open run at a time. A second one throws a `conflict`. */
export async function insertVerifyRun(
  db: Queryable,
  run: {
    companyId: CompanyId
    workspaceId: WorkspaceId
    total: number
    createdBy: UserId
    now: Date
  },
): Promise<VerifyRun> {
  const id = newId<'verify-run'>(run.now.getTime())
  try {
    const row = await db
      .insertInto('verify_run')
      .values({
        company_id: run.companyId,
        id,
        workspace_id: run.workspaceId,
        status: 'RUNNING',
        checked: 0,
        total: run.total,
        verdict: null,
        bad_seq: null,
        bad_event_id: null,
        created_by: run.createdBy,
        created_at: run.now,
        beat_at: NEVER,
        finished_at: null,
      })
      .returningAll()
      .executeTakeFirstOrThrow()
    await deleteOldRuns(db, run.companyId)
    return toRun(row)
  } catch (error) {
    if (sqlStateOf(error) !== SQLSTATE.UNIQUE_VIOLATION) throw error
    throw new ApiError('conflict', {
      message: 'This workspace is already being verified. Wait for the result, or cancel that run.',
      cause: error,
    })
  }
}

async function deleteOldRuns(db: Queryable, companyId: CompanyId): Promise<void> {
  await sql`
    delete from verify_run
     where company_id = ${companyId} and status <> 'RUNNING' and created_at <= (
       select created_at from verify_run where company_id = ${companyId}
        order by created_at desc offset ${RUNS_KEPT_PER_COMPANY} limit 1)`.execute(db)
}

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

/** The runs of these workspaces, newest first. */
export async function listRecentVerifyRuns(
  db: Queryable,
  {
    companyId,
    workspaceIds,
    limit,
  }: { companyId: CompanyId; workspaceIds: readonly WorkspaceId[]; limit: number },
): Promise<VerifyRun[]> {
  if (workspaceIds.length === 0) return []
  const rows = await db
    .selectFrom('verify_run')
    .selectAll()
    .where('company_id', '=', companyId)
    .where('workspace_id', 'in', workspaceIds)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute()
  return rows.map(toRun)
}

/** The newest run of each of these workspaces. */
export async function listLastRuns(
  db: Queryable,
  { companyId, workspaceIds }: { companyId: CompanyId; workspaceIds: readonly WorkspaceId[] },
): Promise<VerifyRun[]> {
  const { rows } = await sql<Selectable<Tables['verify_run']>>`
    select distinct on (workspace_id) *
      from verify_run
     where company_id = ${companyId} and workspace_id = any (${workspaceIds}::uuid[])
     order by workspace_id, created_at desc, id desc`.execute(db)
  return rows.map(toRun)
}

/**
 * The newest verdict of each of these workspaces, if it is BROKEN. A later run without a verdict, such as a
 * canceled one, doesn't repair the chain.
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
         and status in ('HOLDS', 'BROKEN')
       order by workspace_id, created_at desc, id desc) as verdict
     where status = 'BROKEN'
     order by created_at desc, id desc`.execute(db)
  return rows.map(toRun)
}

/**
 * Takes a run that is waiting for a node, or whose node is gone. One whose node was there in the future is from
 * a time when the clock was ahead. The company whose last run was longest
 * ago comes first. A company has one run at a time, in order of creation: only its
 * oldest can be taken, so two nodes can't take two of them at the same time.
 */
export async function claimVerifyRun(db: Queryable, now: Date): Promise<VerifyRun | null> {
  const abandonedBefore = new Date(now.getTime() - ABANDONED_MS)
  const aliveUntil = new Date(now.getTime() + ABANDONED_MS)
  const { rows } = await sql<Selectable<Tables['verify_run']>>`
    update verify_run set beat_at = ${now}
     where (company_id, id) = (
       select next.company_id, next.id
         from verify_run as next
        where next.status = 'RUNNING'
          and (next.beat_at < ${abandonedBefore} or next.beat_at > ${aliveUntil})
          and not exists (
            select from verify_run as other
             where other.company_id = next.company_id and other.status = 'RUNNING'
               and (other.beat_at between ${abandonedBefore} and ${aliveUntil}
                    or (other.created_at, other.id) < (next.created_at, next.id)))
        order by (select last.beat_at
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
  runs: readonly Pick<VerifyRun, 'companyId' | 'id' | 'checked'>[],
  now: Date,
): Promise<Set<VerifyRunId>> {
  const { rows } = await sql<{ id: string }>`
    update verify_run as run set checked = progress.checked, beat_at = ${now}
      from unnest(${runs.map(({ companyId }) => companyId)}::uuid[],
                  ${runs.map(({ id }) => id)}::uuid[],
                  ${runs.map(({ checked }) => checked)}::bigint[]) as progress (company_id, id, checked)
     where run.company_id = progress.company_id and run.id = progress.id and run.status = 'RUNNING'
    returning run.id`.execute(db)
  return new Set(rows.map(({ id }) => assertId(id)))
}

/** Returns false if the run had already ended. */
export async function finishVerifyRun(
  db: Queryable,
  { companyId, id }: Pick<VerifyRun, 'companyId' | 'id'>,
  end: VerifyOutcome,
  now: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('verify_run')
    .set({
      status: end.status,
      ...(end.checked !== null && { checked: end.checked }),
      verdict: end.verdict,
      bad_seq: end.badSeq,
      bad_event_id: end.badEventId,
      finished_at: now,
    })
    .where('company_id', '=', companyId)
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
    verdict: row.verdict,
    badSeq: row.bad_seq,
    badEventId: row.bad_event_id,
    createdBy: row.created_by === null ? null : assertId(row.created_by),
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  }
}
