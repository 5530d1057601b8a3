import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { download, type ExportRequest, makeExport, openDownload, readJob } from './exports.ts'
import type { TestApp } from '../app/start-app.ts'

type Service = Pick<TestApp, 'call' | 'url'>

/** What every download of the same rows must contain, taken from an undisturbed one. */
export type Reference = { body: Buffer; sha256: string; rows: number }

export async function downloadReference(
  annals: Service,
  key: string,
  { rows, ...options }: ExportRequest & { rows: number },
): Promise<Reference> {
  const jobId = await makeExport(annals, key, options)
  const { body, sha256, trailers } = await download(annals, key, jobId)
  assert.equal(trailers['x-row-count'], String(rows))
  assert.equal(trailers['x-content-sha256'], sha256)
  return { body, sha256, rows }
}

/**
 * A download in progress: some of it has been read, and the service waits for the client to read
 * more.
 */
export type HalfDownload = {
  /** Reads the rest. The connection must break before the end, and all bytes before must be right. */
  breaks: () => Promise<void>
  /** Reads the rest. Returns true if it is complete and correct, false if the connection broke. */
  isWhole: () => Promise<boolean>
}

export async function downloadHalf(
  annals: Service,
  key: string,
  { jobId, reference, bytes }: { jobId: string; reference: Reference; bytes: number },
): Promise<HalfDownload> {
  const { response } = await openDownload(annals, key, jobId)
  assert.equal(response.statusCode, 200)
  const begin = await readBytes(response, bytes)
  const readOn = async (): Promise<Buffer> => {
    const body = Buffer.concat([begin, await readRest(response)])
    const expected = reference.body.subarray(0, body.length)
    assert(body.equals(expected), `${body.length} bytes differ from the reference`)
    return body
  }
  return {
    breaks: async () => {
      const { length } = await readOn()
      assert(!response.complete, `${length} bytes ended as if complete`)
    },
    isWhole: async () => {
      const { length } = await readOn()
      if (response.complete) assert.equal(length, reference.body.length)
      return response.complete
    },
  }
}

/** Reads this many bytes or a few more, and leaves the rest unread. */
export async function readBytes(response: IncomingMessage, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let seen = 0
  if (bytes === 0) return Buffer.alloc(0)
  for await (const chunk of response.iterator({ destroyOnReturn: false })) {
    chunks.push(Buffer.from(chunk))
    seen += chunk.length
    if (seen >= bytes) return Buffer.concat(chunks)
  }
  throw new Error(`the body ended after ${seen} of ${bytes} bytes`)
}

async function readRest(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of response) chunks.push(Buffer.from(chunk))
  } catch {
    // The caller checks `complete`.
  }
  return Buffer.concat(chunks)
}

/** The download after the fault: it is complete and correct, and the job succeeds. */
export async function assertDownloads(
  annals: Service,
  key: string,
  jobId: string,
  { sha256, rows }: Reference,
): Promise<void> {
  const received = await download(annals, key, jobId)
  assert.equal(received.status, 200, received.text)
  assert.equal(received.sha256, sha256)
  assert.equal(received.trailers['x-content-sha256'], sha256)
  assert.equal(received.trailers['x-row-count'], String(rows))
  const job = await readJob(annals, key, jobId)
  assert.deepEqual(
    [job.status, job.rowsExported, job.sha256, job.errorCode],
    ['SUCCEEDED', String(rows), sha256, null],
  )
}

/** Creates a new job with the rows of another, as its owner would. */
export async function rerunExport(annals: Service, key: string, jobId: string): Promise<string> {
  const response = await annals.call('POST', `/v1/exports/${jobId}/rerun`, { key })
  assert.equal(response.status, 201, response.text)
  return response.json.jobId
}
