import { ApiError } from '../../../errors.ts'
import type { ColdCache } from '../../../ledger/segment/cold-cache.ts'
import type { CompanyTurns } from '../../../platform/scheduling/company-turns.ts'
import { FairSemaphore } from '../../../platform/scheduling/fair-semaphore.ts'
import { withRowOwner } from '../../../platform/scheduling/row-cost.ts'
import { isOutage } from '../../../platform/pg/database.ts'
import { HOUR_MS, MINUTE_MS } from '../../../platform/time/time-units.ts'
import { type Download, openDownload } from '../download.ts'
import { errorCodeOf, recordFailure } from '../job/export-failure.ts'
import { exportResource } from '../job/export-job.ts'
import { lateExportNotice, raiseExportNotice } from '../job/export-notice.ts'
import { recordAttempt } from '../job/export-job-store.ts'
import { type ExportDeps, startExportSpan } from '../exporter.ts'
import { FILE_PART_BYTES, partKeyOf } from './stored-file.ts'
import {
  claimStoreAttempt,
  delayStoreAttempt,
  extendStoreAttempt,
  finishStoreAttempt,
  type StoreAttempt,
} from './stored-file-store.ts'

export type StoreDeps = ExportDeps & { cache: ColdCache }

/** Longer than reading and writing one part takes. Two workers would write the same bytes. */
const LEASE_MS = 15 * MINUTE_MS
/** Waits after failed attempts. The last one repeats until the job expires. */
const WAITS_MS = [5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 6 * HOUR_MS]
/** Earlier failures are most likely over before anyone reads about them. */
const NOTICE_ATTEMPT = 3
/** A worker writes one file at a time. */
const SEMAPHORE_LIMITS = { permitsMax: 1, waitingMax: 1, waitingPerCompanyMax: 1 }

/** Another worker has the job, or it has ended. */
class LeaseLostError extends Error {
  override name = 'LeaseLostError'
}

/**
 * Runs one job of a schedule and writes its file to the storage. The snapshot of the job is fixed, so every
 * attempt writes the same bytes to the same objects. Returns false if nothing is due.
 */
export async function storeDueExport(
  deps: StoreDeps,
  turns: CompanyTurns,
  signal: AbortSignal,
): Promise<boolean> {
  const { database, clock, logger } = deps
  const nowMs = clock()
  const times = {
    now: new Date(nowMs),
    leaseUntil: new Date(nowMs + LEASE_MS),
    dueMax: new Date(nowMs + Math.max(LEASE_MS, ...WAITS_MS)),
  }
  const attempt = await turns.next(
    (except) => claimStoreAttempt(database.db, { ...times, except }),
    ({ job: { companyId } }) => companyId,
  )
  if (!attempt) return false
  const { job, number } = attempt
  using span = startExportSpan(deps, job)
  try {
    // Writing the file uses its company's share of the main thread, not the service's.
    await withRowOwner(job.companyId, () => storeFile(deps, attempt, signal))
    logger.info({ event: 'export.stored', jobId: job.id, attempt: number })
  } catch (error) {
    span?.fail(errorCodeOf(error) ?? 'internal')
    logger.warn({ event: 'export.not-stored', jobId: job.id, attempt: number, err: error })
    if (error instanceof LeaseLostError) return true
    const waitMs = WAITS_MS[Math.min(number, WAITS_MS.length) - 1] ?? HOUR_MS
    await delayStoreAttempt(database.db, attempt, new Date(clock() + waitMs))
    if (error instanceof ApiError && error.code === 'archive_restoring') {
      await noteRestore(deps, job)
    } else if (number >= NOTICE_ATTEMPT && !signal.aborted && !isOutage(error)) {
      await raiseExportNotice(deps, lateExportNotice(job, errorCodeOf(error) ?? 'internal'))
    }
  }
  return true
}

async function noteRestore(
  { database, clock }: StoreDeps,
  job: StoreAttempt['job'],
): Promise<void> {
  const summary = 'Archived events are being restored.'
  const failure = { at: new Date(clock()), code: 'storage_unavailable', summary } as const
  await recordAttempt(database.db, job, failure)
}

async function storeFile(
  deps: StoreDeps,
  attempt: StoreAttempt,
  signal: AbortSignal,
): Promise<void> {
  const { database, clock, audit, cache } = deps
  const { job } = attempt
  const stop = new AbortController()
  const abort = () => stop.abort(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    await using download = await openDownload(deps, job, {
      stop,
      semaphore: new FairSemaphore(SEMAPHORE_LIMITS),
      coldSemaphore: new FairSemaphore(SEMAPHORE_LIMITS),
      cache,
      bytesMax: Infinity,
    })
    const parts = await writeParts(deps, attempt, download)
    await database.db.transaction().execute(async (trx) => {
      const { rows, bytes, sha256, isTruncated: truncated } = await download.finish(trx)
      const now = new Date(clock())
      if (!(await finishStoreAttempt(trx, attempt, { parts, now }))) throw new LeaseLostError()
      const metadata = { rows, bytes, sha256, truncated }
      const entry = { action: 'EXPORT_STORED', resource: exportResource(job), metadata } as const
      await audit(trx, job.companyId, [entry])
    })
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** All parts but the last have the same size. Returns their number: none for an empty file. */
async function writeParts(
  deps: StoreDeps,
  attempt: StoreAttempt,
  download: Download,
): Promise<number> {
  const buffer = Buffer.allocUnsafe(FILE_PART_BYTES)
  let parts = 0
  let filled = 0
  const write = async () => {
    parts += 1
    await writePart(deps, attempt, { part: parts, bytes: buffer.subarray(0, filled) })
    filled = 0
  }
  for await (const chunk of download.chunks()) {
    for (let copied = 0; copied < chunk.length;) {
      const bytes = chunk.copy(buffer, filled, copied)
      copied += bytes
      filled += bytes
      if (filled === FILE_PART_BYTES) await write()
    }
  }
  if (filled > 0) await write()
  return parts
}

async function writePart(
  deps: StoreDeps,
  attempt: StoreAttempt,
  { part, bytes }: { part: number; bytes: Buffer },
): Promise<void> {
  const { database, archive, clock } = deps
  const { job } = attempt
  const leaseUntil = new Date(clock() + LEASE_MS)
  if (!(await extendStoreAttempt(database.db, attempt, { partsMax: part, leaseUntil }))) {
    throw new LeaseLostError()
  }
  const key = partKeyOf(job, part)
  try {
    // Fails if the storage isn't the archive of this database, such as the mount point of a missing disk.
    await archive.stat(key)
    await archive.put(key, bytes)
  } catch (error) {
    await recordFailure(deps, job, error)
    throw error
  }
}
