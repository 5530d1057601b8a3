import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { ApiError } from '../../../errors.ts'
import { storageUnavailable } from '../../../ledger/segment/archive-refusal.ts'
import { StorageError } from '../../../platform/object-store/object-store.ts'
import type { FairSemaphore } from '../../../platform/scheduling/fair-semaphore.ts'
import type { Download } from '../download.ts'
import { type ExportJob, isOpen } from '../job/export-job.ts'
import type { ExportResult } from '../job/export-job-store.ts'
import type { ExportDeps } from '../exporter.ts'

/** What sends a file: either the job's run, or its stored file. */
export type OpenDownload = AsyncDisposable &
  Pick<Download, 'rows' | 'signal' | 'chunks' | 'result' | 'finish'>

/** The size of all parts but the last. A worker has one in memory. */
export const FILE_PART_BYTES = 16 * 1_024 * 1_024
/** A download has one piece in memory. */
const PIECE_BYTES = 512 * 1_024

/** Segments are in folders named by workspace IDs, so no segment has this prefix. */
export function partKeyOf({ companyId, id }: Pick<ExportJob, 'companyId' | 'id'>, part: number) {
  return `exports/${companyId}/${id}/${String(part).padStart(6, '0')}`
}

/** The file of a schedule is written in the background, and only then can it be downloaded. */
export function refuseUnstored({ cadence, status, id }: ExportJob): void {
  if (cadence === null || !isOpen(status)) return
  throw new ApiError('export_not_downloadable', {
    message: `The export ${id} belongs to a schedule and is being written. Download it when it is SUCCEEDED.`,
  })
}

type StoredOptions = { stop: AbortController; coldSemaphore: FairSemaphore }

/** Opens the stored file of a job. Throws if its first bytes can't be read. */
export async function openStoredFile(
  deps: Pick<ExportDeps, 'archive'>,
  job: ExportJob,
  options: StoredOptions,
): Promise<OpenDownload> {
  const download = new StoredDownload(deps, job, options)
  try {
    await download.begin()
  } catch (error) {
    if (error instanceof StoredFileError) throw lostFileError(job, error)
    throw error instanceof StorageError ? storageUnavailable(error) : error
  }
  return download
}

function lostFileError({ id }: ExportJob, cause: StoredFileError): ApiError {
  const message = `The stored file of the export ${id} is missing or damaged. Rerun the export.`
  return new ApiError('export_not_downloadable', { message, cause })
}

class StoredFileError extends Error {
  override name = 'StoredFileError'
}

/** Reads a stored file in pieces, and compares it with the size and digest of its job. */
class StoredDownload implements OpenDownload {
  readonly #deps: Pick<ExportDeps, 'archive'>
  readonly #job: ExportJob
  readonly #options: StoredOptions
  readonly #hash = createHash('sha256')
  readonly #source: AsyncGenerator<Buffer, void, void>
  #bytes = 0
  #first: IteratorResult<Buffer, void> | null = null

  constructor(deps: Pick<ExportDeps, 'archive'>, job: ExportJob, options: StoredOptions) {
    this.#deps = deps
    this.#job = job
    this.#options = options
    this.#source = this.#pieces()
  }

  get rows(): number {
    return this.#job.rowsExported
  }

  get signal(): AbortSignal {
    return this.#options.stop.signal
  }

  async begin(): Promise<void> {
    this.#first = await this.#source.next()
  }

  async *chunks(): AsyncGenerator<Buffer, void, void> {
    let next = this.#first
    while (next?.done === false) {
      yield next.value
      next = await this.#source.next()
    }
  }

  async *#pieces(): AsyncGenerator<Buffer, void, void> {
    const { storedParts, bytes } = this.#job
    for (let part = 1; part <= (storedParts ?? 0); part += 1) {
      const partBytes = Math.min(FILE_PART_BYTES, (bytes ?? 0) - (part - 1) * FILE_PART_BYTES)
      for (let start = 0; start < partBytes; start += PIECE_BYTES) {
        const end = Math.min(start + PIECE_BYTES, partBytes)
        yield await this.#read(partKeyOf(this.#job, part), start, end)
      }
    }
    this.#refuseDamaged()
  }

  async #read(key: string, start: number, end: number): Promise<Buffer> {
    const { coldSemaphore } = this.#options
    using _permit = await coldSemaphore.take(this.#job.companyId, this.signal)
    const piece = await this.#deps.archive.readRange(key, start, end, this.signal)
    if (piece === null) throw new StoredFileError(`${key} is missing`)
    this.#hash.update(piece)
    this.#bytes += piece.length
    return piece
  }

  #refuseDamaged(): void {
    const { id, bytes, sha256 } = this.#job
    if (this.#bytes === bytes && this.#hash.digest('hex') === sha256) return
    throw new StoredFileError(`the file of ${id} has other bytes than the job`)
  }

  get result(): ExportResult {
    const { rowsExported: rows, isTruncated, sha256, bytes, spans } = this.#job
    assert(isTruncated !== null && sha256 !== null && bytes !== null, 'a stored job has succeeded')
    return { rows, isTruncated, sha256, bytes, spans }
  }

  async finish(): Promise<ExportResult> {
    return this.result
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#options.stop.abort()
    await this.#source.return()
  }
}
