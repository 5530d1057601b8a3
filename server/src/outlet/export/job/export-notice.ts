import type { NoticeDraft } from '../../../tenancy/notice/notice.ts'
import { type ExportErrorCode, type ExportJob, exportFailureOf } from './export-job.ts'

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
