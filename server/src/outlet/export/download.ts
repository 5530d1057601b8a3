import { ApiError } from '../../errors.ts'
import {
  archiveRestoring,
  storageTimeout,
  storageUnavailable,
} from '../../ledger/segment/archive-refusal.ts'
import { SegmentColdError } from '../../ledger/segment/cold-reader.ts'
import { readsFrom } from '../../ledger/replica/chain-reads.ts'
import type { ColdCache } from '../../ledger/segment/cold-cache.ts'
import { AHEAD_ROWS_MIN, readEvents } from '../../ledger/reader.ts'
import { requestRestores } from '../../ledger/segment/restore.ts'
import type { Segment } from '../../ledger/segment/segment-store.ts'
import type { FairSemaphore } from '../../platform/scheduling/fair-semaphore.ts'
import { withDeadline } from '../../platform/time/deadline.ts'
import { Loop } from '../../platform/scheduling/loop.ts'
import { StorageError } from '../../platform/object-store/object-store.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { DownloadTooLargeError, errorCodeOf, recordFailure } from './job/export-failure.ts'
import { type ExportJob, exportFailureOf, isOpen } from './job/export-job.ts'
import {
  type ExportResult,
  findExportJob,
  finishExportJob,
  updateProgress,
  startExportJob,
} from './job/export-job-store.ts'
import { ExportRun } from './export-run.ts'
import { segmentsOf } from './export-segments.ts'
import { startRestores, type ExportDeps } from './exporter.ts'

/** How often a download stores its progress and checks whether its job has ended. */
const WATCH_EVERY_MS = 1_000
/** The reader doesn't read ahead for pages this small, so no download reads ahead while others wait. */
const CROWDED_ROWS_MAX = AHEAD_ROWS_MIN - 1

/** Aborting `stop` ends the download with its reason. All downloads share the semaphores and the cache. */
type DownloadOptions = {
  stop: AbortController
  semaphore: Pick<FairSemaphore, 'take' | 'isCrowded'>
  /** For archive reads: storage that hangs must not delay exports of hot events. */
  coldSemaphore: FairSemaphore
  cache: ColdCache
  /** The download is aborted before it exceeds this size, uncompressed. */
  bytesMax: number
}

/**
 * Opens a download, which runs its job. Throws if the job can't be downloaded (anymore) or its archive has
 * to be restored first, and leaves the job open. The job becomes RUNNING when the first bytes are ready.
 */
export async function openDownload(
  deps: ExportDeps,
  job: ExportJob,
  terms: DownloadOptions,
): Promise<Download> {
  if (!isOpen(job.status) || job.expiresAt.getTime() <= deps.clock())
    throw notDownloadableError(job)
  const download = new Download(deps, job, terms)
  try {
    await refuseRestoring(deps, job, terms.stop.signal)
    await download.begin()
    const now = new Date(deps.clock())
    if (!(await startExportJob(deps.database.db, job, now))) {
      throw notDownloadableError(await reread(deps, job))
    }
  } catch (error) {
    const refusal = await refusalOf(deps, job, error)
    await download[Symbol.asyncDispose]()
    throw refusal
  }
  download.watch()
  return download
}

async function refuseRestoring(
  { archive, database, timeouts: { checkMs } }: ExportDeps,
  job: ExportJob,
  signal: AbortSignal,
): Promise<void> {
  const segments = segmentsOf(database.db, job)
  if (await requestRestores(archive, segments, { checkMs, signal })) throw archiveRestoring()
}

/** Turns an error before the first byte into an error response. */
async function refusalOf(deps: ExportDeps, job: ExportJob, error: unknown): Promise<unknown> {
  if (errorCodeOf(error) === null) return error
  if (error instanceof SegmentColdError) return archiveRestoring()
  await recordFailure(deps, job, error)
  if (!(error instanceof StorageError)) return notDownloadableError(await reread(deps, job))
  return storageUnavailable(error)
}

function notDownloadableError(job: ExportJob): ApiError {
  const { status, id, errorCode, failureSummary } = job
  if (status === 'FAILED' && errorCode !== null) {
    const { message, retryHint } = exportFailureOf(job, errorCode)
    const sentences = [`The export ${id} is FAILED.`, message, failureSummary ?? '', retryHint]
    return new ApiError('export_not_downloadable', { message: sentences.join(' ') })
  }
  const message = isOpen(status)
    ? `The export ${id} has expired. Rerun it to download it.`
    : `The export ${id} is ${status}. Only a PENDING or RUNNING export can be downloaded. Rerun it.`
  return new ApiError('export_not_downloadable', { message })
}

async function reread({ database }: ExportDeps, job: ExportJob): Promise<ExportJob> {
  const owner = { companyId: job.companyId, workspaceId: null }
  return (await findExportJob(database.db, owner, job.id)) ?? job
}

function tooLarge(bytesMax: number): string {
  return `A download in the dashboard was aborted because the file is larger than ${bytesMax} bytes, the dashboard's limit.`
}

/** The job was canceled or failed during this download. */
class ExportEndedError extends Error {
  override name = 'ExportEndedError'

  constructor(job: ExportJob) {
    super(`the export ${job.id} is ${job.status}`)
  }
}

/**
 * Why a download was cut, for the audit log: the error code of the export or of the access that was lost,
 * or `interrupted` if the client disconnected or the service stopped.
 */
export function cutReasonOf(cause: unknown): string {
  if (cause instanceof ExportEndedError) return 'export_ended'
  if (cause instanceof ApiError && cause.code !== 'overloaded') return cause.code
  return errorCodeOf(cause) ?? 'interrupted'
}

/**
 * A download in progress, which keeps its job's status up to date. Several downloads of a job can run at
 * once: the first to finish sets the job to SUCCEEDED, and the others continue to their end.
 */
export class Download implements AsyncDisposable {
  readonly job: ExportJob
  readonly #deps: ExportDeps
  readonly #stop: AbortController
  readonly #bytesMax: number
  readonly #run: ExportRun
  readonly #source: AsyncGenerator<Buffer, void, void>
  #first: Promise<IteratorResult<Buffer, void>> | null = null
  /** Resolves when the running archive read ends, whether or not it succeeded. */
  #archiveRead: Promise<void> | null = null
  #watch: Loop | null = null
  /** The segment that aborted the download because it has to be restored. */
  #coldAt: Segment | null = null

  constructor(
    deps: ExportDeps,
    job: ExportJob,
    { stop, semaphore, coldSemaphore, cache, bytesMax }: DownloadOptions,
  ) {
    this.job = job
    this.#deps = deps
    this.#stop = stop
    this.#bytesMax = bytesMax
    const { signal } = stop
    const { database, reads = readsFrom(database), archive } = deps
    const reader = {
      database,
      reads,
      archive,
      cache,
      signal,
      acquire: () => semaphore.take(job.companyId, signal),
      acquireArchiveRead: () => this.#readArchive(coldSemaphore),
    }
    const includeStubs = job.evidence === 'COMPLETE'
    const isCrowded = () => semaphore.isCrowded || coldSemaphore.isCrowded
    this.#run = new ExportRun({
      format: job.format,
      filter: job.filter,
      ranges: job.ranges,
      rowLimit: job.rowLimit,
      includeStubs,
      read: (range, filter, limit) =>
        readEvents(reader, { ...range, includeStubs }, filter, () => {
          const { rows, bytes } = limit()
          return { rows: isCrowded() ? Math.min(rows, CROWDED_ROWS_MAX) : rows, bytes }
        }),
      now: () => performance.now(),
      owner: job.companyId,
      signal,
    })
    this.#source = this.#run.chunks()
  }

  get rows(): number {
    return this.#run.rows
  }

  /** Aborted when the response must be cut. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** An archive read lasts from the wait for its permit until it releases the permit. */
  async #readArchive(semaphore: FairSemaphore): Promise<Disposable> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#archiveRead = promise
    try {
      const permit = await semaphore.take(this.job.companyId, this.signal)
      const end = () => {
        permit[Symbol.dispose]()
        resolve()
      }
      return { [Symbol.dispose]: end }
    } catch (error) {
      resolve()
      throw error
    }
  }

  /**
   * Waits for the first bytes, and throws an error until then, so that the caller gets an error response. A
   * search that takes longer continues after the headers are sent, but an archive read must end first: if the
   * storage hangs, the caller gets an error rather than an empty file.
   */
  async begin(): Promise<void> {
    const { firstChunkMs, archiveMs } = this.#deps.timeouts
    const first = this.#source.next()
    this.#first = first
    // If it fails later, `chunks` throws the error.
    first.catch((error: unknown) => this.#noteCold(error))
    if (await settlesWithin(first, firstChunkMs)) return
    await withDeadline(Promise.race([first, this.#archiveRead]), {
      timeoutMs: archiveMs - firstChunkMs,
      late: () => storageTimeout(archiveMs),
    })
    // The error of a failed read reaches `first` only after the read has ended.
    await settlesWithin(first, 0)
  }

  async *chunks(): AsyncGenerator<Buffer, void, void> {
    try {
      let bytes = 0
      let next = await this.#first
      while (next?.done === false) {
        bytes += next.value.length
        if (bytes > this.#bytesMax) throw new DownloadTooLargeError(tooLarge(this.#bytesMax))
        yield next.value
        next = await this.#source.next()
      }
    } catch (error) {
      this.#noteCold(error)
      // An aborted download isn't a failure of the job: the caller that aborted it has the reason.
      if (!this.signal.aborted) await recordFailure(this.#deps, this.job, error)
      throw error
    }
  }

  /** Only valid after the last chunk. */
  get result(): ExportResult {
    return this.#run.result
  }

  /**
   * Call it after sending every byte and before ending the response. Pass a transaction if the job must
   * succeed together with something else.
   */
  async finish(db: Queryable = this.#deps.database.db): Promise<ExportResult> {
    const { result } = this
    if (!(await finishExportJob(db, this.job, result, new Date(this.#deps.clock())))) {
      await this.#refuseEnded()
    }
    return result
  }

  watch(): void {
    this.#watch = new Loop({
      name: 'export-watch',
      everyMs: WATCH_EVERY_MS,
      logger: this.#deps.logger,
      run: async () => {
        try {
          await this.#look()
        } catch (error) {
          // Ignores a database outage, which reading the next page will report.
          if (error instanceof ExportEndedError) this.#stop.abort(error)
        }
      },
    })
  }

  async #look(): Promise<void> {
    if (await updateProgress(this.#deps.database.db, this.job, this.#run.rows)) return
    await this.#refuseEnded()
  }

  async #refuseEnded(): Promise<void> {
    const job = await reread(this.#deps, this.job)
    if (job.status !== 'SUCCEEDED') throw new ExportEndedError(job)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort()
    await this.#watch?.[Symbol.asyncDispose]()
    await this.#first?.catch(() => {})
    await this.#source.return()
    // After the response is cut, so that the client doesn't wait for it.
    if (this.#coldAt) await this.#requestRestores(this.#coldAt)
  }

  #noteCold(error: unknown): void {
    if (error instanceof SegmentColdError) this.#coldAt = error.segment
  }

  /** Requests the restore of a cold segment, and of those that the rest of the export needs after it. */
  async #requestRestores({ workspaceId, firstSeq }: Segment): Promise<void> {
    const { job } = this
    const index = job.ranges.findIndex((range) => range.workspaceId === workspaceId)
    const ranges = job.ranges
      .slice(index)
      .map((range, nth) => (nth === 0 ? { ...range, fromSeq: firstSeq } : range))
    await startRestores(this.#deps, job, { ...job, ranges, rowLimit: job.rowLimit - this.rows })
  }
}

/** Whether the work settled in time. Throws its error if it failed. */
async function settlesWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  const timer = setTimeout(resolve, timeoutMs, false)
  try {
    return await Promise.race([work.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}
