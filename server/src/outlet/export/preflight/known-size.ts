import type { ExportJob } from '../job/export-job.ts'
import { findExportJob } from '../job/export-job-store.ts'
import type { ExportDeps } from '../exporter.ts'
import { estimateFile } from './preflight.ts'

/**
 * The minimum size of a job's file, as far as it is known before reading it, or 0 if unknown. A rerun has the
 * size of the first run. Otherwise, rows are counted and some of them measured.
 */
export async function minimumBytesOf(deps: ExportDeps, job: ExportJob): Promise<number> {
  const owner = { companyId: job.companyId, workspaceId: null }
  const first = job.rerunOf && (await findExportJob(deps.database.db, owner, job.rerunOf))
  if (first && first.bytes !== null && first.rowLimit === job.rowLimit) return first.bytes
  return (await estimateFile(deps, job)).leastBytes
}
