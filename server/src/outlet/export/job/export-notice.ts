import type { Logger } from '../../../platform/logger.ts'
import type { Database } from '../../../platform/pg/database.ts'
import type { Clock } from '../../../platform/time/clock.ts'
import type { NoticeDraft } from '../../../tenancy/notice/notice.ts'
import { raiseNotices } from '../../../tenancy/notice/notice-store.ts'
import type { ExportSchedule } from '../schedule/schedule.ts'
import { type ExportErrorCode, type ExportJob, exportFailureOf } from './export-job.ts'

type NoticeDeps = { database: Database; clock: Clock; logger: Logger }

/** Raises a notice beside the work that it is about, which must not fail because of it. */
export async function raiseExportNotice(
  { database, clock, logger }: NoticeDeps,
  notice: NoticeDraft,
): Promise<void> {
  await raiseNotices(database.db, [notice], clock()).catch((error: unknown) => {
    logger.warn({ event: 'notice.not-raised', companyId: notice.companyId, err: error })
  })
}

/** A job without a workspace is visible to its creator, like the job itself. */
export function exportNotice(job: ExportJob, errorCode: ExportErrorCode): NoticeDraft {
  const { message, retryHint } = exportFailureOf(job, errorCode)
  const isExpired = errorCode === 'expired'
  return {
    companyId: job.companyId,
    kind: isExpired ? 'EXPORT_EXPIRED' : 'EXPORT_FAILED',
    cause: job.id,
    workspaceId: job.workspaceId ?? job.filterWorkspaceId,
    userId: job.createdBy,
    message: `A ${job.format} export ${isExpired ? 'expired' : 'failed'}. ${message} ${retryHint}`,
    link: `/app/exports?job=${job.id}`,
  }
}

/** For a scheduled export whose file could not be stored yet. Attempts continue. */
export function lateExportNotice(job: ExportJob, errorCode: ExportErrorCode): NoticeDraft {
  const { message, retryHint } = exportFailureOf(job, errorCode)
  return {
    ...exportNotice(job, errorCode),
    cause: `${job.id}:late`,
    message: `A scheduled ${job.format} export is late. ${message} ${retryHint}`,
  }
}

/** For a schedule whose job could not be created, once per period. Attempts continue. */
export function scheduleNotice(schedule: ExportSchedule, problem: string): NoticeDraft {
  const { companyId, templateId, periodEndMs, filterWorkspaceId, name } = schedule
  return {
    companyId,
    kind: 'EXPORT_FAILED',
    cause: `${templateId}:${periodEndMs}`,
    workspaceId: filterWorkspaceId,
    message: `The scheduled export “${name}” could not start. ${problem}`,
    link: '/app/exports',
  }
}
