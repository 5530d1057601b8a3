import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../../errors.ts'
import type { ColdCache } from '../../ledger/segment/cold-cache.ts'
import { cutReasonOf, openDownload } from '../../outlet/export/download.ts'
import {
  type ExportFormat,
  type ExportJob,
  exportResource,
} from '../../outlet/export/job/export-job.ts'
import type { ExportResult } from '../../outlet/export/job/export-job-store.ts'
import { type ExportDeps, startExportSpan } from '../../outlet/export/exporter.ts'
import { contentDispositionOf } from '../../outlet/export/file-name.ts'
import { type OpenDownload, openStoredFile } from '../../outlet/export/schedule/stored-file.ts'
import { readOwnerNames } from '../../outlet/export/job/owner-names-store.ts'
import { FairSemaphore } from '../../platform/scheduling/fair-semaphore.ts'
import { TimedSemaphore } from '../../platform/scheduling/timed-semaphore.ts'
import type { Caller } from '../../tenancy/caller.ts'
import { prefersGzip } from '../http/accept-encoding.ts'
import { DOWNLOAD_LIMITS, type DownloadLimits, DownloadSlots } from './download-slots.ts'
import type { RequestSlots } from '../http/request-slots.ts'
import { sendDownload } from './send-download.ts'
import { exemptFromWriteStall, takenBytesOf } from '../http/write-stall.ts'

const SLOT_GRACE_MS = 5_000
/**
 * Limits concurrent fetches, because all other calls share the node's connections. A fetch is a page of the
 * table or a row group of the archive. A slow client holds no permit while it reads.
 */
const SEMAPHORE_LIMITS = {
  permitsMax: 6,
  waitingMax: DOWNLOAD_LIMITS.downloadsMax,
  waitingPerCompanyMax: DOWNLOAD_LIMITS.perCompanyMax,
}
/** Even the slowest client reads something within this time. */
const STALL_MS_MAX = 600_000

const CONTENT_TYPES: Record<ExportFormat, string> = {
  JSONL: 'application/x-ndjson',
  CSV: 'text/csv; charset=utf-8',
}

/** How a route restricts a download. */
export type DownloadRules = {
  /** Watches the caller's access until disposed of. `onLost` ends the download. */
  watch: (onLost: (reason: unknown) => void) => Disposable
  /** Called once the download has a slot. Throws to refuse it. */
  check: () => Promise<void>
  /** Called before the first byte. Throws to refuse it. */
  begin: () => Promise<void>
  /**
   * Marks the job as succeeded before the client sees the end of the file. Throws to cut the download.
   */
  finish: (download: OpenDownload) => Promise<ExportResult>
  /** Records that the download was cut. */
  caller: Pick<Caller, 'record'>
  /** Uncompressed size. */
  bytesMax: number
}

/** A ZIP archive that contains the file of a job. */
export type Pack = {
  /**
   * Refuses a job whose pack can't be completed. Called after the other checks.
   */
  check: (signal: AbortSignal) => Promise<void>
  /** The archive. Calls `finish` before it ends. */
  chunks: (download: OpenDownload, finish: () => Promise<unknown>) => AsyncIterable<Buffer>
}

/** What a download consists of, from the request to its end. */
type Transfer = {
  request: FastifyRequest
  reply: FastifyReply
  job: ExportJob
  rules: DownloadRules
  /** Null to send the file itself. */
  pack: Pack | null
}

/** A download that ended before the client got everything. */
type CutDownload = { rows: number; reason: string }

/** All downloads on the node, from the API and the dashboard. They share its memory and its connections. */
export class DownloadManager {
  readonly #deps: ExportDeps
  readonly #requests: RequestSlots
  readonly #slots: DownloadSlots
  readonly #fetches = new TimedSemaphore({ ...SEMAPHORE_LIMITS, permitsPerCompanyMax: 4 })
  readonly #coldFetches = new FairSemaphore(SEMAPHORE_LIMITS)
  readonly #cache: ColdCache
  /** With the audit entries of downloads that were cut, which are written after their slots are released. */
  readonly #running = new Set<Promise<void>>()

  constructor(
    deps: ExportDeps,
    { slots, cache, limits }: { slots: RequestSlots; cache: ColdCache; limits: DownloadLimits },
  ) {
    this.#deps = deps
    const { unreadMs } = deps.timeouts
    this.#slots = new DownloadSlots({ ...limits, graceMs: SLOT_GRACE_MS, unreadMs })
    this.#requests = slots
    this.#cache = cache
  }

  /** The number of downloads in progress. */
  get openCount(): number {
    return this.#slots.size
  }

  /** Runs the job. Errors before the first byte become a response. Later ones cut the connection. */
  async send(transfer: Transfer): Promise<void> {
    const running = this.#sendAndRecord(transfer)
    this.#running.add(running)
    try {
      await running
    } finally {
      this.#running.delete(running)
    }
  }

  async #sendAndRecord(transfer: Transfer): Promise<void> {
    const cut = await this.#transferTraced(transfer)
    // Without the download's slot, because many downloads can end at once, and this waits for the database.
    if (cut) await this.#recordCut(transfer, cut)
  }

  /** Only downloads that run their job have a span. The others read a stored file. */
  async #transferTraced(transfer: Transfer): Promise<CutDownload | null> {
    const { job, request } = transfer
    using span = job.storedParts === null ? startExportSpan(this.#deps, job, request.span) : null
    if (span) request.span?.addLink(span)
    try {
      const cut = await this.#transfer(transfer)
      if (cut) span?.fail(cut.reason)
      return cut
    } catch (error) {
      span?.fail(cutReasonOf(error))
      throw error
    }
  }

  /** Returns null if the client got everything. */
  async #transfer({ request, reply, job, rules, pack }: Transfer): Promise<CutDownload | null> {
    const { watch, check, begin, finish, bytesMax } = rules
    using slot = this.#slots.take(job.companyId)
    const { stop } = slot
    // The client disconnected. Nothing reads this error, and it doesn't count as a failure.
    const abort = () => stop.abort(new ApiError('overloaded'))
    reply.raw.once('close', abort)
    // If it disconnected earlier, `close` was already emitted.
    if (reply.raw.destroyed) abort()
    using _access = watch((reason) => stop.abort(reason))
    await check()
    await pack?.check(stop.signal)
    const node = { semaphore: this.#fetches, coldSemaphore: this.#coldFetches, cache: this.#cache }
    const terms = { stop, bytesMax, ...node }
    await using download =
      job.storedParts === null
        ? await openDownload(this.#deps, job, terms)
        : await openStoredFile(this.#deps, job, terms)
    // `begin` and `finish` write to the database, and can wait for the company's lock.
    const disposition = await this.#requests.run(job.companyId, async () => {
      const text = await this.#dispositionOf(job, pack ? 'zip' : undefined)
      await begin()
      return text
    })
    stop.signal.throwIfAborted()
    const isGzip = !pack && prefersGzip(request.headers['accept-encoding']?.toString())
    const hasTrailers = !pack && request.raw.httpVersion !== '1.0'
    const startedAtMs = performance.now()
    const type = pack ? 'application/zip' : CONTENT_TYPES[job.format]
    reply.headers(headersOf({ type, disposition, isGzip, hasTrailers }))
    reply.hijack()
    exemptFromWriteStall(reply.raw)
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) reply.raw.setHeader(name, value)
    }
    reply.raw.flushHeaders()
    slot.takenBytes = () => takenBytesIfUnread(reply.raw)
    const end = () => this.#requests.run(job.companyId, () => finish(download))
    const sendable = pack
      ? { chunks: () => pack.chunks(download, end), finish: async () => ({}) }
      : { chunks: () => download.chunks(), finish: async () => trailersOf(await end()) }
    const { signal } = download
    const limits = { isGzip, stallMsMax: STALL_MS_MAX }
    const sending = await sendDownload(reply.raw, { ...sendable, signal }, limits)
    this.#deps.logger.info({
      event: sending.kind === 'complete' ? 'export.downloaded' : 'export.cut',
      jobId: job.id,
      rows: download.rows,
      durationMs: Math.round(performance.now() - startedAtMs),
      ...(sending.kind === 'cut' && { reason: String(sending.cause) }),
    })
    if (sending.kind === 'complete') return null
    return { rows: download.rows, reason: cutReasonOf(sending.cause) }
  }

  async #dispositionOf(job: ExportJob, extension?: string): Promise<string> {
    const { companyId, ranges } = job
    const only = ranges.length === 1 ? ranges[0] : undefined
    const workspaceId = job.filterWorkspaceId ?? only?.workspaceId ?? job.workspaceId
    const { db } = this.#deps.database
    const owner = await readOwnerNames(db, { companyId, workspaceId })
    return contentDispositionOf(job, owner, extension)
  }

  /** A failure is only logged, because the download has already ended. */
  async #recordCut({ job, rules }: Transfer, metadata: CutDownload): Promise<void> {
    const { database, logger } = this.#deps
    const entry = {
      action: 'EXPORT_DOWNLOAD_CUT',
      resource: exportResource(job),
      metadata,
    } as const
    try {
      await this.#requests.run(job.companyId, () =>
        database.db.transaction().execute((trx) => rules.caller.record(trx, entry)),
      )
    } catch (error) {
      logger.warn({ event: 'export.not-audited', jobId: job.id, err: error })
    }
  }

  /** Gives running downloads a few seconds to finish, then cuts them. */
  async close(): Promise<void> {
    await this.#slots.close()
    await Promise.allSettled(this.#running)
  }
}

/** Null if the client has read everything so far. */
function takenBytesIfUnread({ socket, writableLength }: ServerResponse): number | null {
  return socket && writableLength > 0 ? takenBytesOf(socket) : null
}

function trailersOf({ rows, sha256 }: ExportResult): Record<string, string> {
  return { 'x-row-count': String(rows), 'x-content-sha256': sha256 }
}

type Head = { type: string; disposition: string; isGzip: boolean; hasTrailers: boolean }

function headersOf({ type, disposition, isGzip, hasTrailers }: Head): Record<string, string> {
  return {
    'content-type': type,
    'content-disposition': disposition,
    vary: 'accept-encoding',
    ...(isGzip && { 'content-encoding': 'gzip' }),
    ...(hasTrailers && { trailer: 'x-row-count, x-content-sha256' }),
  }
}
