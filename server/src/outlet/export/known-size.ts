import type { ExportJob } from './export-job.ts'
import { findExportJob } from './export-job-store.ts'
import type { ExportDeps } from './exporter.ts'
import { estimateFile } from './preflight.ts'

/**
 * What the file of a job will have at least, as far as that is known before it is read: a rerun has as
 * much as the first run had; otherwise rows are counted and some of them measured. 0: not known.
 */
export async function leastBytesOf(deps: ExportDeps, job: ExportJob): Promise<number> {
  const owner = { companyId: job.companyId, workspaceId: null }
  const first = job.rerunOf && (await findExportJob(deps.database.db, owner, job.rerunOf))
  if (first && first.bytes !== null && first.rowLimit === job.rowLimit) return first.bytes
  return (await estimateFile(deps, job)).leastBytes
}
