import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError } from '../errors.ts'
import { ColdCache } from '../ledger/cold-cache.ts'
import { type Download, openDownload } from '../outlet/export/download.ts'
import type { ExportFormat, ExportJob } from '../outlet/export/export-job.ts'
import type { ExportResult } from '../outlet/export/export-job-store.ts'
import type { ExportDeps } from '../outlet/export/exporter.ts'
import { FairSemaphore } from '../platform/fair-semaphore.ts'
import { prefersGzip } from './accept-encoding.ts'
import { DownloadSlots } from './download-slots.ts'
import type { RequestSlots } from './request-slots.ts'
import { sendDownload } from './send-download.ts'
import { exemptFromWriteStall } from './write-stall.ts'

const SLOT_LIMITS = { downloadsMax: 200, perCompanyMax: 50, graceMs: 5_000 }
/**
 * Of the node's connections, which are there for every other call too. A turn is one fetch: a page of
 * the table, or a row group of the archive; a client that takes its time has none meanwhile.
 */
const SEMAPHORE_LIMITS = {
  permitsMax: 6,
  waitingMax: SLOT_LIMITS.downloadsMax,
  waitingPerCompanyMax: SLOT_LIMITS.perCompanyMax,
}
/** However slow a client is, in this time it takes something. */
const STALL_MS_MAX = 600_000

const CONTENT: Record<ExportFormat, { type: string; extension: string }> = {
  JSONL: { type: 'application/x-ndjson', extension: 'jsonl' },
  CSV: { type: 'text/csv; charset=utf-8', extension: 'csv' },
}

/** What a route asks for beside the download itself. */
export type DownloadTerms = {
  /** Watches the caller's access until disposed of. `onLost` ends the download. */
  watch: (onLost: (reason: unknown) => void) => Disposable
  /** Called when there is a place for it; throws to refuse it. */
  check: () => Promise<void>
  /** Called before the first byte; throws to refuse it. */
  begin: () => Promise<void>
  /** Makes the job succeed, before the client is told that this was all; throws to cut it. */
  finish: (download: Download) => Promise<ExportResult>
  /** Uncompressed. */
  bytesMax: number
}

/** The default terms of a download. */
export const PLAIN_TERMS: Omit<DownloadTerms, 'watch'> = {
  check: async () => {},
  begin: async () => {},
  finish: (download) => download.finish(),
  bytesMax: Infinity,
}

/** The downloads of a node, whoever asks for them: they share its memory and its connections. */
export class DownloadManager {
  readonly #deps: ExportDeps
  readonly #requests: RequestSlots
  readonly #slots = new DownloadSlots(SLOT_LIMITS)
  readonly #turns = new FairSemaphore(SEMAPHORE_LIMITS)
  readonly #coldTurns = new FairSemaphore(SEMAPHORE_LIMITS)
  readonly #cache = new ColdCache()

  constructor(deps: ExportDeps, requests: RequestSlots) {
    this.#deps = deps
    this.#requests = requests
  }

  /** Runs the job: what it throws is an answer, and what goes wrong later cuts the connection. */
  async send(
    { raw: request }: FastifyRequest,
    reply: FastifyReply,
    job: ExportJob,
    { watch, check, begin, finish, bytesMax }: DownloadTerms,
  ): Promise<void> {
    using slot = this.#slots.take(job.companyId)
    const { stop } = slot
    // The client disconnected. Nothing reads this error, and it doesn't count as a failure.
    const leave = () => stop.abort(new ApiError('overloaded'))
    reply.raw.once('close', leave)
    // If it disconnected earlier, `close` was already emitted.
    if (reply.raw.destroyed) leave()
    using _access = watch((reason) => stop.abort(reason))
    await check()
    const node = { turns: this.#turns, coldTurns: this.#coldTurns, cache: this.#cache }
    const terms = { stop, bytesMax, ...node }
    await using download = await openDownload(this.#deps, job, terms)
    // These two write, and can wait for a lock of the company.
    await this.#requests.run(job.companyId, begin)
    stop.signal.throwIfAborted()
    const isGzip = prefersGzip(request.headers['accept-encoding']?.toString())
    const hasTrailers = request.httpVersion !== '1.0'
    const startedAtMs = performance.now()
    reply.headers(headersOf(job, { isGzip, hasTrailers }))
    reply.hijack()
    exemptFromWriteStall(reply.raw)
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) reply.raw.setHeader(name, value)
    }
    reply.raw.flushHeaders()
    const sendable = {
      chunks: () => download.chunks(),
      finish: () => this.#requests.run(job.companyId, () => finish(download)),
      signal: download.signal,
    }
    const sending = await sendDownload(reply.raw, sendable, { isGzip, stallMsMax: STALL_MS_MAX })
    this.#deps.logger.info({
      event: sending.kind === 'complete' ? 'export.downloaded' : 'export.cut',
      jobId: job.id,
      rows: download.rows,
      durationMs: Math.round(performance.now() - startedAtMs),
      ...(sending.kind === 'cut' && { reason: String(sending.cause) }),
    })
  }

  /** Lets those that run come to their end for a while, then cuts them. */
  async close(): Promise<void> {
    await this.#slots.close()
  }
}

function headersOf(
  { id, format }: ExportJob,
  { isGzip, hasTrailers }: { isGzip: boolean; hasTrailers: boolean },
): Record<string, string> {
  const { type, extension } = CONTENT[format]
  return {
    'content-type': type,
    'content-disposition': `attachment; filename="annals-export-${id}.${extension}"`,
    vary: 'accept-encoding',
    ...(isGzip && { 'content-encoding': 'gzip' }),
    ...(hasTrailers && { trailer: 'x-row-count, x-content-sha256' }),
  }
}
