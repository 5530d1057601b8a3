import { type ExportJob, exportResource } from '../../outlet/export/job/export-job.ts'
import { type AddJob, cancelExportJob } from '../../outlet/export/exporter.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import type { Clock } from '../../platform/time/clock.ts'
import { type AuditEntry, type Caller, changeAs } from '../../tenancy/caller.ts'
import type { DownloadRules } from './download-manager.ts'
import { exportRecord } from './export-record.ts'

/* Changes to export jobs, for keys and members alike. */

/** Inserts a new job together with its audit entry. */
export function addJobAs(
  caller: Caller,
  { db }: { db: Queryable },
  action: AuditEntry['action'],
  metadata: Record<string, unknown> = {},
): AddJob {
  return async (insert) => {
    const job = await changeAs(caller, db, async (trx, record) => {
      const job = await insert(trx)
      const { name, source, format, filters, evidence, rowLimit } = exportRecord(job)
      const what = {
        ...(name !== null && { name }),
        source,
        format,
        filters,
        ...(evidence !== 'NONE' && { evidence }),
        rowLimit,
        ...metadata,
      }
      record({ action, resource: exportResource(job), metadata: what })
      return job
    })
    // The span of the run has a link to the request.
    caller.span?.remember(job.id)
    return job
  }
}

/** Cancels the job and its running downloads. */
export async function cancelJob(
  { db, clock }: { db: Queryable; clock: Clock },
  caller: Caller,
  job: ExportJob,
): Promise<void> {
  await changeAs(caller, db, async (trx, record) => {
    if (!(await cancelExportJob(trx, job, new Date(clock())))) return
    const metadata = { status: job.status, rows: job.rowsExported }
    record({ action: 'EXPORT_CANCELED', resource: exportResource(job), metadata })
  })
}

/**
 * Adds audit entries to a download. The start is recorded before the first byte. The end is recorded in the
 * transaction that marks the job as succeeded, before the client sees the end of the file. If either fails,
 * the download is cut. The caller is needed to record a cut after the fact.
 */
export function auditDownload(
  { db }: { db: Queryable },
  caller: Caller,
  job: ExportJob,
): Pick<DownloadRules, 'begin' | 'finish' | 'caller'> {
  const resource = exportResource(job)
  return {
    caller,
    begin: () =>
      changeAs(caller, db, async (_trx, record) => {
        const { source, format } = job
        record({ action: 'EXPORT_DOWNLOAD_STARTED', resource, metadata: { source, format } })
      }),
    finish: (download) =>
      changeAs(caller, db, async (trx, record) => {
        const result = await download.finish(trx)
        const { rows, bytes, sha256, isTruncated: truncated } = result
        const metadata = { rows, bytes, sha256, truncated }
        record({ action: 'EXPORT_DOWNLOADED', resource, metadata })
        return result
      }),
  }
}
