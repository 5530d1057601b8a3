import { sql } from 'kysely'
import type { CompanyId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { type ExportJob, OPEN_EXPORT_STATUSES } from '../job/export-job.ts'
import { toJob } from '../job/export-job-row.ts'

type JobKey = Pick<ExportJob, 'companyId' | 'id'>

/** An attempt of a worker to write a file. Its number distinguishes it from those of other workers. */
export type StoreAttempt = { job: ExportJob; number: number }

/**
 * Claims the job of a schedule whose file is due. If its worker dies, it is due again after the lease. A job
 * that is due after `dueMax` was scheduled while the clock was ahead.
 */
export async function claimStoreAttempt(
  db: Queryable,
  {
    now,
    leaseUntil,
    dueMax,
    except,
  }: { now: Date; leaseUntil: Date; dueMax: Date; except: readonly CompanyId[] },
): Promise<StoreAttempt | null> {
  const due = db
    .selectFrom('export_job')
    .select(['company_id', 'id'])
    .where((eb) => eb.or([eb('attempt_due_at', '<=', now), eb('attempt_due_at', '>', dueMax)]))
    .where('status', 'in', OPEN_EXPORT_STATUSES)
    .$if(except.length > 0, (select) => select.where('company_id', 'not in', except))
    .orderBy('attempt_due_at')
    .limit(1)
    .forUpdate()
    .skipLocked()
  const row = await db
    .with('due', () => due)
    .updateTable('export_job as j')
    .from('due')
    .set((eb) => ({
      attempt_due_at: leaseUntil,
      attempt_count: eb('j.attempt_count', '+', 1),
    }))
    .whereRef('j.company_id', '=', 'due.company_id')
    .whereRef('j.id', '=', 'due.id')
    .returningAll('j')
    .executeTakeFirst()
  return row ? { job: toJob(row), number: row.attempt_count } : null
}

/** Call it before writing an object. Returns false if the lease is lost or the job has ended. */
export async function extendStoreAttempt(
  db: Queryable,
  attempt: StoreAttempt,
  { partsMax, leaseUntil }: { partsMax: number; leaseUntil: Date },
): Promise<boolean> {
  const result = await attemptRow(db, attempt)
    .set((eb) => ({
      attempt_due_at: leaseUntil,
      parts_max: eb.fn<number>('greatest', ['parts_max', eb.val(partsMax)]),
    }))
    .where('status', 'in', OPEN_EXPORT_STATUSES)
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

/** Plans the next attempt after a failed one. */
export async function delayStoreAttempt(
  db: Queryable,
  attempt: StoreAttempt,
  dueAt: Date,
): Promise<void> {
  await attemptRow(db, attempt).set({ attempt_due_at: dueAt }).execute()
}

/** Marks the file as complete. Call it after the job has succeeded. Returns false if the lease is lost. */
export async function finishStoreAttempt(
  db: Queryable,
  attempt: StoreAttempt,
  { parts, now }: { parts: number; now: Date },
): Promise<boolean> {
  const result = await attemptRow(db, attempt)
    .set({ attempt_due_at: null, parts_max: parts, stored_at: now })
    .executeTakeFirst()
  return result.numUpdatedRows === 1n
}

function attemptRow(db: Queryable, { job, number }: StoreAttempt) {
  return db
    .updateTable('export_job')
    .where('company_id', '=', job.companyId)
    .where('id', '=', job.id)
    .where('attempt_count', '=', number)
}

/** Ended jobs that may still have objects, and the number of these. */
export type OldFile = JobKey & { partsMax: number }

/** Files of jobs that ended before the given time, oldest first. They can't be downloaded anymore. */
export async function claimOldFiles(
  db: Queryable,
  { before, limit }: { before: Date; limit: number },
): Promise<OldFile[]> {
  const { rows } = await sql<OldFile>`
    update export_job
       set stored_at = null, attempt_due_at = null
     where ctid = any(array(
             select ctid
               from export_job
              where finished_at < ${before} and parts_max > 0
              order by finished_at
              limit ${limit}
                for update skip locked))
 returning company_id as "companyId", id, parts_max as "partsMax"`.execute(db)
  return rows
}

/** Call it when the objects are deleted. Then the job can be deleted too. */
export async function forgetFile(db: Queryable, { companyId, id }: JobKey): Promise<void> {
  await db
    .updateTable('export_job')
    .set({ parts_max: 0 })
    .where('company_id', '=', companyId)
    .where('id', '=', id)
    .execute()
}
