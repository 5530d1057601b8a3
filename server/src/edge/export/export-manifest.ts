import { ApiError } from '../../errors.ts'
import { stubRecordJson } from '../../ledger/event-record.ts'
import { readShortRun, type ShortRunReads } from '../../ledger/read-short-run.ts'
import {
  type ExportJob,
  type ExportRange,
  isEmptyRange,
  isOpen,
  type SeqSpan,
} from '../../outlet/export/job/export-job.ts'
import type { ExportResult } from '../../outlet/export/job/export-job-store.ts'
import { type ProofDeps, proveLeafOf, readCheckpoint } from '../../outlet/proof/read-proof.ts'
import type { CompanyId } from '../../platform/id.ts'
import { withRowOwner } from '../../platform/scheduling/row-cost.ts'
import { TimeSlice } from '../../platform/scheduling/time-slice.ts'
import { formatUtcMs } from '../../platform/time/utc-time.ts'
import type { ArchiveReadLimiter } from '../archive-read-limiter.ts'
import type { RequestSlots } from '../http/request-slots.ts'
import { exportRecord } from './export-record.ts'
import type { ExportRouteDeps } from './export-resource.ts'

export type ManifestDeps = ProofDeps &
  Pick<ExportRouteDeps, 'exports' | 'coldCache'> & { slots: RequestSlots }

/** Who reads a manifest. */
export type ManifestCall = {
  companyId: CompanyId
  /** The key or member. */
  callerId: string
  archiveReads: ArchiveReadLimiter
  /** Aborts when the client disconnects. */
  signal: AbortSignal
}

const VERSION = 1
const RETRY_SECONDS = 5

/** What a manifest says about the file. */
type FileResult = Pick<ExportResult, 'rows' | 'sha256' | 'spans'>

/** The result of a job that has succeeded. Throws if it hasn't. */
export function finishedResult(job: ExportJob): FileResult {
  const { id, status, rowsExported: rows, sha256, spans } = job
  if (status === 'SUCCEEDED' && sha256 !== null) return { rows, sha256, spans }
  throw new ApiError('conflict', {
    message: isOpen(status)
      ? `The export ${id} is ${status}. It has a manifest once it is SUCCEEDED, after its first complete download.`
      : `The export ${id} is ${status}, so it has no manifest. Rerun it.`,
    ...(isOpen(status) && { retryAfterSeconds: RETRY_SECONDS }),
  })
}

/**
 * The manifest of a job's file, as JSON. A company has at most 101 workspaces, so it has a few hundred kilobytes
 * at most.
 */
export async function manifestJson(
  deps: ManifestDeps,
  call: ManifestCall,
  job: ExportJob,
  { rows, sha256, spans }: FileResult,
): Promise<{ json: string; origins: string[] }> {
  const lines = linesOfRanges(job, spans)
  const slice = new TimeSlice(call.companyId)
  const workspaces: string[] = []
  const origins: string[] = []
  for (const one of lines) {
    const { json, origin } = await withRowOwner(call.companyId, () =>
      workspaceJson(deps, call, job, one),
    )
    workspaces.push(json)
    origins.push(origin)
    if (slice.isOver) await slice.next(call.signal)
  }
  const { format, filters, evidence } = exportRecord(job)
  const head = { version: VERSION, jobId: job.id, format, filters, rows, sha256, evidence }
  const atMs = snapshotAtOf(job)
  const snapshotAt = atMs === null ? null : formatUtcMs(atMs)
  const text = JSON.stringify({ ...head, ...(evidence === 'COMPLETE' && { snapshotAt }) })
  const json = `${text.slice(0, -1)},"workspaces":[${workspaces.join(',')}]}`
  return { json, origins }
}

type RangeLines = { range: ExportRange; span: SeqSpan | null }

function linesOfRanges(
  { id, ranges, evidence }: ExportJob,
  spans: ExportJob['spans'],
): RangeLines[] {
  return ranges.map((range, nth) => {
    const { fromSeq: firstSeq, toSeq: lastSeq } = range
    // A COMPLETE file has every event of its ranges.
    if (evidence === 'COMPLETE') {
      return { range, span: isEmptyRange(range) ? null : { firstSeq, lastSeq } }
    }
    if (spans === null) throw unknownLinesError(id)
    return { range, span: spans[nth] ?? null }
  })
}

function unknownLinesError(id: string): ApiError {
  return new ApiError('conflict', {
    message: `The export ${id} was finished by a version of Annals without manifests. Rerun it, and download the new export.`,
  })
}

async function workspaceJson(
  deps: ManifestDeps,
  call: ManifestCall,
  job: ExportJob,
  { range: { workspaceId, fromSeq, toSeq }, span }: RangeLines,
): Promise<{ json: string; origin: string }> {
  const hasBefore = job.evidence === 'COMPLETE' && job.filter.fromMs !== null
  const lastSeq = span?.lastSeq ?? (hasBefore ? toSeq : 0)
  // Without the last event, nothing would show that the one after it is the next one.
  const hasAfter = snapshotAtOf(job) !== null && lastSeq === toSeq
  const place = { workspaceId, lastSeq, afterSeq: hasAfter ? toSeq + 1 : null }
  const { checkpoint, lastLeafProof, afterLeafProof } = await proveEnds(deps, call, place)
  const read = (seq: number) => readStub(deps, call, { workspaceId, seq })
  const before = hasBefore ? await read(fromSeq - 1) : null
  const after = afterLeafProof && (await read(toSeq + 1))
  const { origin, vkey, note } = checkpoint
  const text = JSON.stringify({
    workspaceId,
    origin,
    vkey,
    firstSeq: span?.firstSeq ?? null,
    lastSeq: span?.lastSeq ?? null,
    checkpoint: note,
    lastLeafProof,
    ...(after !== null && { afterLeafProof }),
  })
  const stubs = Object.entries({ before, after }).filter(([, stub]) => stub !== null)
  const stubsText = stubs.map(([name, stub]) => `,"${name}":${stub}`).join('')
  return { origin, json: `${text.slice(0, -1)}${stubsText}}` }
}

/** Null if later events may have been in the ledger already: the hot ones, for an export of archived events. */
function snapshotAtOf({ snapshotAtMs, source }: ExportJob): number | null {
  return source === 'ARCHIVED' ? null : snapshotAtMs
}

type Place = Pick<ExportRange, 'workspaceId'>

/** The proofs of the last event and of the one after it, for the same checkpoint. A seq of 0 has no proof. */
async function proveEnds(
  deps: ManifestDeps,
  call: ManifestCall,
  { workspaceId, lastSeq, afterSeq }: Place & { lastSeq: number; afterSeq: number | null },
) {
  return await deps.slots.hold(call, call.signal, async () => {
    const checkpoint = await readCheckpoint(deps, workspaceId)
    const proofOf = async (seq: number) => {
      const { index, hashes } = await proveLeafOf(deps, checkpoint, { workspaceId, seq })
      const texts = hashes.map((hash) => hash.toString('base64'))
      return { index, size: checkpoint.size, hashes: texts }
    }
    const isAfterSigned = afterSeq !== null && afterSeq <= checkpoint.size
    return {
      checkpoint,
      lastLeafProof: lastSeq === 0 ? null : await proofOf(lastSeq),
      afterLeafProof: isAfterSigned ? await proofOf(afterSeq) : null,
    }
  })
}

/**
 * An event before or after the file, which shows that the file starts early enough or ends late enough. Null before
 * the first event of a chain, and if the archive no longer has the file of the event.
 */
async function readStub(
  deps: ManifestDeps,
  call: ManifestCall,
  { workspaceId, seq }: Place & { seq: number },
): Promise<string | null> {
  if (seq === 0) return null
  const reads = readsOf(deps, call)
  const [event] = await readShortRun(reads, { workspaceId, fromSeq: seq, toSeq: seq })
  return event ? stubRecordJson(event) : null
}

function readsOf(deps: ManifestDeps, call: ManifestCall): ShortRunReads {
  const { database, archive, timeouts } = deps.exports
  const { archiveReads, signal } = call
  return {
    database,
    archive,
    cache: deps.coldCache,
    acquire: () => takeSlot(deps, call),
    acquireArchiveRead: () => archiveReads.take(call, signal),
    checkMs: timeouts.checkMs,
    signal,
  }
}

function takeSlot(
  { slots }: ManifestDeps,
  { companyId, callerId, signal }: ManifestCall,
): Promise<Disposable> {
  return slots.take(companyId, signal, callerId)
}
