import { ApiError } from '../../../errors.ts'
import { type ExportJob, isOpen } from '../../../outlet/export/export-job.ts'
import { leastBytesOf } from '../../../outlet/export/known-size.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

const MEGABYTE = 1_024 * 1_024

/** What a browser is given: it keeps all of a download before anybody sees it. */
export const DOWNLOAD_BYTES_MAX = 100 * MEGABYTE

/** Before a byte is sent, as far as the size is known by then. The download itself has the same bound. */
export async function refuseTooLarge(
  { exports, downloadBytesMax }: Pick<DashboardDeps, 'exports' | 'downloadBytesMax'>,
  job: ExportJob,
): Promise<void> {
  // Of one that has ended nothing is sent, and whoever opens it says so.
  if (!isOpen(job.status)) return
  const bytes = await leastBytesOf(exports, job)
  if (bytes <= downloadBytesMax) return
  throw new ApiError('download_too_large', {
    message: `The file has about ${inMegabytes(bytes)}, and the dashboard sends ${inMegabytes(downloadBytesMax)} at most. Download it with an API key: GET /v1/exports/${job.id}/download, with the header Authorization: Bearer <key>. Or make an export with narrower filters.`,
  })
}

function inMegabytes(bytes: number): string {
  const megabytes = bytes / MEGABYTE
  return `${megabytes < 10 ? megabytes.toFixed(1) : Math.round(megabytes)} MB`
}
