import { createHash, type Hash, randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type Annals, connectionOf } from '../annals.ts'
import type { CallOptions, Connection } from '../client/connection.ts'
import { AnnalsApiError, AnnalsNetworkError } from '../client/errors.ts'
import { retryWaitMs } from '../client/retry.ts'
import type { ExportJob } from '../resource/types.ts'
import { openDownload } from './open-download.ts'
import { type RowCounter, rowCounter } from './row-counter.ts'

export type DownloadOptions = Pick<CallOptions, 'signal' | 'retriesMax'> & {
  /** Called for each piece that arrives. A download that is repeated starts at 0 again. */
  onProgress?: (progress: { bytes: number; rows: number }) => void
  /** Creates a job with the same rows if this one has already ended. Default: true. */
  rerun?: boolean
  /** How long to wait for archived events that are being restored. Default: 0, which throws. */
  restoreWaitMsMax?: number
}

/** A complete file: its row count and SHA-256 are those that the service reported. */
export type DownloadedExport = {
  /** The job that was downloaded, which is another one after a rerun. */
  jobId: string
  path: string
  rows: number
  bytes: number
  sha256: string
}

/**
 * Streams an export to a file, and checks that it is complete. The file appears under its name only then.
 * A download that breaks off starts again. If the job has already ended, its rows are downloaded with a new
 * job, unless `path` is already the complete file, so a program that was interrupted can just run again.
 *
 * ```ts
 * const { jobId } = await annals.exports.create({ source: 'HOT', format: 'JSONL' })
 * const { rows } = await downloadExport(annals, jobId, 'events.jsonl')
 * ```
 */
export async function downloadExport(
  annals: Annals,
  jobId: string,
  path: string,
  options: DownloadOptions = {},
): Promise<DownloadedExport> {
  const job = await annals.exports.get(jobId, options)
  return (await findComplete(job, path)) ?? (await downloadJob(annals, jobId, path, options))
}

/** The file of an earlier download of the same job. */
export async function findComplete(job: ExportJob, path: string): Promise<DownloadedExport | null> {
  if (job.status !== 'SUCCEEDED') return null
  const hash = createHash('sha256')
  let bytes = 0
  try {
    for await (const chunk of createReadStream(path)) {
      hash.update(chunk)
      bytes += chunk.length
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  const sha256 = hash.digest('hex')
  if (sha256 !== job.sha256) return null
  return { jobId: job.id, path, rows: Number(job.rowsExported), bytes, sha256 }
}

/** Repeats the download until it is complete, with a new job if the old one has ended. */
async function downloadJob(
  annals: Annals,
  jobId: string,
  path: string,
  options: DownloadOptions,
): Promise<DownloadedExport> {
  const connection = connectionOf(annals)
  const { retryAfterMsMax, random } = connection
  const { retriesMax = connection.retriesMax, rerun = true, signal } = options
  let reruns = 0
  let restoreWaitMs = options.restoreWaitMsMax ?? 0
  for (let attempt = 1; ;) {
    try {
      return await downloadOnce(annals, jobId, path, options)
    } catch (error) {
      if (hasEnded(error) && rerun && reruns <= retriesMax) {
        reruns += 1
        jobId = (await annals.exports.rerun(jobId, signal ? { signal } : {})).jobId
        continue
      }
      const limits = { attempt, retriesMax, retryAfterMsMax, retryPolicy: 'safe', random } as const
      const waitMs = restoreMs(error, restoreWaitMs) ?? retryWaitMs(error, limits)
      if (waitMs === null) throw error
      if (isRestoring(error)) restoreWaitMs -= waitMs
      else attempt += 1
      await connection.sleep(waitMs, signal)
    }
  }
}

/** A job also ends when the service has sent everything, even if the last bytes were lost. */
function hasEnded(error: unknown): boolean {
  return error instanceof AnnalsApiError && error.code === 'export_not_downloadable'
}

function isRestoring(error: unknown): error is AnnalsApiError {
  return error instanceof AnnalsApiError && error.code === 'archive_restoring'
}

function restoreMs(error: unknown, leftMs: number): number | null {
  if (!isRestoring(error) || error.retryAfterMs === null) return null
  // A wait of zero would never use up what is left.
  const waitMs = Math.max(1_000, error.retryAfterMs)
  return waitMs <= leftMs ? waitMs : null
}

async function downloadOnce(
  annals: Annals,
  jobId: string,
  path: string,
  options: DownloadOptions,
): Promise<DownloadedExport> {
  const connection = connectionOf(annals)
  const request = {
    method: 'GET',
    path: `/v1/exports/${encodeURIComponent(jobId)}/download`,
    accept: '*/*',
  } as const
  const response = await openDownload(connection, request, options.signal)
  const partial = `${path}.${randomBytes(6).toString('hex')}.part`
  try {
    const rows = rowCounter(response.headers['content-type'] ?? '')
    const file = { path: partial, hash: createHash('sha256'), rows, bytes: 0 }
    await save(connection, response, file, options)
    const sha256 = file.hash.digest('hex')
    await requireComplete(annals, jobId, response, { rows: rows.rows, sha256 })
    await rename(partial, path)
    await syncFolder(dirname(path))
    return { jobId, path, rows: rows.rows, bytes: file.bytes, sha256 }
  } catch (error) {
    response.destroy()
    await rm(partial, { force: true })
    throw error
  }
}

type PartialFile = { path: string; hash: Hash; rows: RowCounter; bytes: number }

/** Writes the body to disk, and syncs it, so that the file is still complete after a power failure. */
async function save(
  connection: Connection,
  response: IncomingMessage,
  file: PartialFile,
  { onProgress, signal }: DownloadOptions,
): Promise<void> {
  const handle = await open(file.path, 'wx')
  try {
    // Without this, a connection that died silently would never end.
    const idleMsMax = Math.max(connection.timeoutMs, 60_000)
    response.setTimeout(idleMsMax, () => {
      response.destroy(new Error(`No data arrived within ${idleMsMax} ms.`))
    })
    await pipeline(response, async (chunks: AsyncIterable<Buffer>) => {
      for await (const chunk of chunks) {
        file.hash.update(chunk)
        file.rows.add(chunk)
        await handle.writeFile(chunk)
        file.bytes += chunk.length
        onProgress?.({ bytes: file.bytes, rows: file.rows.rows })
      }
    })
    await handle.sync()
  } catch (cause) {
    signal?.throwIfAborted()
    if (cause instanceof Error && 'syscall' in cause && cause.syscall === 'write') throw cause
    throw brokenDownload('The download broke off.', cause)
  } finally {
    await handle.close()
  }
}

/** Compares the file with the trailers or, if a proxy dropped those, with the job. */
async function requireComplete(
  annals: Annals,
  jobId: string,
  { trailers }: IncomingMessage,
  file: { rows: number; sha256: string },
): Promise<void> {
  const trailerSha256 = trailers['x-content-sha256']
  const job = trailerSha256 === undefined ? await annals.exports.get(jobId) : null
  const sha256 = trailerSha256 ?? job?.sha256
  const rows = trailers['x-row-count'] ?? job?.rowsExported
  if (file.sha256 === sha256 && String(file.rows) === rows) return
  const message = `The file has ${file.rows} rows and the SHA-256 ${file.sha256}. The service sent ${rows} rows and ${sha256}.`
  throw brokenDownload(message)
}

/** Transient: the rows of a job never change, so the next download can be complete. */
function brokenDownload(message: string, cause?: unknown): AnnalsNetworkError {
  return new AnnalsNetworkError(message, { code: 'incomplete_download', cause })
}

/** Makes a rename durable. Some systems can't sync folders, so errors are ignored. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder).catch(() => null)
  await handle?.sync().catch(() => {})
  await handle?.close()
}
