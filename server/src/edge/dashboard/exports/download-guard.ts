import { ApiError } from '../../../errors.ts'
import { type ExportJob, isOpen } from '../../../outlet/export/job/export-job.ts'
import { minimumBytesOf } from '../../../outlet/export/preflight/known-size.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'

const MEGABYTE = 1_024 * 1_024

/** The limit for browsers, which hold a whole download before the user can open it. */
export const DOWNLOAD_BYTES_MAX = 100 * MEGABYTE

/** Refuses before the first byte, as far as the size is known by then. The download has the same limit. */
export async function refuseTooLarge(
  { exports, downloadBytesMax }: Pick<DashboardDeps, 'exports' | 'downloadBytesMax'>,
  job: ExportJob,
): Promise<void> {
  const isStored = job.storedParts !== null
  // A job that has ended sends nothing but a stored file, and opening its download reports that.
  if (!isOpen(job.status) && !isStored) return
  const bytes = isStored ? (job.bytes ?? 0) : await minimumBytesOf(exports, job)
  if (bytes <= downloadBytesMax) return
  throw new ApiError('download_too_large', {
    message: `The file is about ${inMegabytes(bytes)}, and the dashboard sends at most ${inMegabytes(downloadBytesMax)}. Download it with an API key: GET /v1/exports/${job.id}/download with the header Authorization: Bearer <key>. Or create an export with narrower filters.`,
  })
}

function inMegabytes(bytes: number): string {
  const megabytes = bytes / MEGABYTE
  return `${megabytes < 10 ? megabytes.toFixed(1) : Math.round(megabytes)} MB`
}
