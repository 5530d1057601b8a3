import { AssertionError } from 'node:assert/strict'
import { SegmentDamagedError, SegmentMissingError } from '../../../ledger/segment/segment-reader.ts'
import type { Clock } from '../../../platform/time/clock.ts'
import type { Logger } from '../../../platform/logger.ts'
import { StorageError } from '../../../platform/object-store/object-store.ts'
import type { Database } from '../../../platform/pg/database.ts'
import type { ServiceAudit } from '../../../tenancy/caller.ts'
import { raiseNotices } from '../../../tenancy/notice/notice-store.ts'
import { type ExportErrorCode, type ExportJob, exportResource } from './export-job.ts'
import { endExportJob, recordAttempt } from './export-job-store.ts'
import { exportNotice } from './export-notice.ts'

/** The file is larger than the caller of this download is allowed to have. */
export class DownloadTooLargeError extends Error {
  override name = 'DownloadTooLargeError'
}

type FailureDeps = { database: Database; clock: Clock; logger: Logger; audit: ServiceAudit }

/** These leave the job open, because another download, or one through the API, can succeed. */
const TEMPORARY: readonly ExportErrorCode[] = ['storage_unavailable', 'download_too_large']

/**
 * Stores a failure in the job. A missing or damaged segment ends the job, because later downloads would fail
 * too. A storage outage doesn't, and neither does a download that was too large for its client. The job of a
 * schedule stays open in any case, because the service tries again. Returns the error code, or null if the error
 * isn't one of the job.
 */
export async function recordFailure(
  deps: FailureDeps,
  job: ExportJob,
  error: unknown,
): Promise<ExportErrorCode | null> {
  const { database, clock, logger } = deps
  const errorCode = errorCodeOf(error)
  logger.warn({ event: 'export.broken', jobId: job.id, errorCode, err: error })
  if (errorCode === null) return null
  const summary = summaryOf(error)
  const now = new Date(clock())
  const isTemporary = job.cadence !== null || TEMPORARY.includes(errorCode)
  const noting = isTemporary
    ? recordAttempt(database.db, job, { at: now, code: errorCode, summary })
    : failJob(deps, job, { errorCode, failureSummary: summary, now })
  await noting.catch((cause: unknown) =>
    logger.warn({ event: 'export.not-ended', jobId: job.id, err: cause }),
  )
  return errorCode
}

/** Fails the job together with its audit entry. */
async function failJob(
  { database, audit }: FailureDeps,
  job: ExportJob,
  end: { errorCode: ExportErrorCode; failureSummary: string; now: Date },
): Promise<void> {
  await database.db.transaction().execute(async (trx) => {
    if (!(await endExportJob(trx, job, end))) return
    const metadata = { errorCode: end.errorCode }
    await raiseNotices(trx, [exportNotice(job, end.errorCode)], end.now.getTime())
    const entry = { action: 'EXPORT_FAILED', resource: exportResource(job), metadata } as const
    await audit(trx, job.companyId, [entry])
  })
}

/** The message for the job's owner. The storage's location and error go only to the log. */
function summaryOf(error: unknown): string {
  if (error instanceof StorageError) return error.summary
  if (error instanceof AssertionError) return 'Stored data is not in the expected format.'
  return error instanceof Error ? error.message : String(error)
}

/** Null for errors that don't concern the job, such as a database outage. */
export function errorCodeOf(error: unknown): ExportErrorCode | null {
  if (error instanceof SegmentMissingError) return 'segment_missing'
  if (error instanceof SegmentDamagedError) return 'segment_damaged'
  if (error instanceof StorageError) return 'storage_unavailable'
  if (error instanceof DownloadTooLargeError) return 'download_too_large'
  if (error instanceof AssertionError) return 'internal'
  return null
}
