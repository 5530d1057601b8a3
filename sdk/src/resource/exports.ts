import type { CallOptions, Connection } from '../client/connection.ts'
import { Pages } from '../client/pages.ts'
import { send, sendJson } from '../client/send.ts'
import type {
  CreatedExport,
  ExportFilters,
  ExportInput,
  ExportJob,
  ExportManifest,
  ExportPage,
  ExportPreflight,
  ExportStatusResult,
} from './types.ts'

/**
 * Creates and reads export jobs. `downloadExport` of `@annals/sdk/node` writes one to a file and checks that
 * it is complete.
 */
export class Exports {
  readonly #connection: Connection

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** Creates a job, which fixes the rows to export. */
  create(input: ExportInput, options?: CallOptions): Promise<CreatedExport> {
    const request = { method: 'POST', path: '/v1/exports', body: input } as const
    return sendJson(this.#connection, request, options)
  }

  /** The jobs that the key can see, newest first. */
  list(filters: ExportFilters = {}, options?: CallOptions): Pages<ExportJob, ExportPage> {
    const read = (cursor: string | undefined): Promise<ExportPage> => {
      const query = { ...filters, cursor }
      return sendJson(this.#connection, { method: 'GET', path: '/v1/exports', query }, options)
    }
    return new Pages(read, filters.cursor)
  }

  get(jobId: string, options?: CallOptions): Promise<ExportJob> {
    return sendJson(this.#connection, { method: 'GET', path: pathOf(jobId) }, options)
  }

  /** Estimates the rows and the size of an export, and creates nothing. */
  preflight(input: ExportInput, options?: CallOptions): Promise<ExportPreflight> {
    const path = '/v1/exports/preflight'
    const request = { method: 'POST', path, body: input, retryPolicy: 'safe' } as const
    return sendJson(this.#connection, request, options)
  }

  /** Creates a job with the same rows. */
  rerun(jobId: string, options?: CallOptions): Promise<CreatedExport> {
    const path = `${pathOf(jobId)}/rerun`
    return sendJson(this.#connection, { method: 'POST', path }, options)
  }

  /** Ends an open job and cuts its downloads. */
  cancel(jobId: string, options?: CallOptions): Promise<ExportStatusResult> {
    const path = `${pathOf(jobId)}/cancel`
    return sendJson(this.#connection, { method: 'POST', path, retryPolicy: 'safe' }, options)
  }

  /** What links the file of an export to the signed ledger. Save it as JSON for `verifyExport`. */
  async manifest(jobId: string, options?: CallOptions): Promise<ExportManifest> {
    const path = `${pathOf(jobId)}/manifest`
    return await sendJson(this.#connection, { method: 'GET', path }, options)
  }

  /**
   * The rows as they arrive, for runtimes without a disk. The timeout covers the time to the first byte; the
   * signal also ends the stream. A complete stream is a complete file: if anything goes wrong, it fails.
   */
  async stream(jobId: string, options?: CallOptions): Promise<ReadableStream<Uint8Array>> {
    const request = { method: 'GET', path: `${pathOf(jobId)}/download`, accept: '*/*' } as const
    const { signal } = options ?? {}
    return await send(this.#connection, request, options, async ({ body }) => {
      const rows = body ?? new ReadableStream({ start: (controller) => controller.close() })
      return signal ? rows.pipeThrough(new TransformStream(), { signal }) : rows
    })
  }
}

function pathOf(jobId: string): string {
  return `/v1/exports/${encodeURIComponent(jobId)}`
}
