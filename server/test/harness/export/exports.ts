import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { request, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { query } from '../database/engine.ts'
import { eventually } from '../timing/eventually.ts'
import type { TestResponse, TestApp } from '../app/start-app.ts'

type Caller = Pick<TestApp, 'call'>

export type ExportRequest = {
  name?: string
  source?: string
  format?: string
  filters?: Record<string, unknown>
  limit?: number
  evidence?: string
}

/** Creates a job and returns its id. */
export async function makeExport(
  annals: Caller,
  key: string,
  options: ExportRequest = {},
): Promise<string> {
  const body = { source: 'HOT', format: 'JSONL', ...options }
  const { status, json, text } = await annals.call('POST', '/v1/exports', { key, body })
  assert.equal(status, 201, text)
  assert.equal(json.status, 'PENDING')
  return json.jobId
}

/** Copies the job this many times, with new ids. */
export async function copyJob(
  annals: TestApp,
  jobId: string,
  { count }: { count: number },
): Promise<void> {
  await query(
    annals.database.connection,
    `insert into export_job (company_id, id, workspace_id, source, format, filters, ranges,
                             row_limit, status, created_at, expires_at, finished_at)
     select company_id, gen_random_uuid(), workspace_id, source, format, filters, ranges,
            row_limit, status, created_at, expires_at, finished_at
       from export_job, generate_series(1, ${count})
      where id = '${jobId}'`,
  )
}

export async function readJob(
  annals: Caller,
  key: string,
  jobId: string,
): Promise<TestResponse['json']> {
  const { status, json, text } = await annals.call('GET', `/v1/exports/${jobId}`, { key })
  assert.equal(status, 200, text)
  return json
}

export type Received = {
  status: number
  headers: IncomingMessage['headers']
  trailers: NodeJS.Dict<string>
  /** As received, possibly compressed. */
  body: Buffer
  text: string
  sha256: string
}

/** A download that the test reads at its own pace. Nothing is read until then. */
export type OpenDownload = {
  response: IncomingMessage
  /** Reads to the end. Rejects if the connection is cut first. */
  rest: () => Promise<Received>
  /** Disconnects the client. */
  leave: () => void
}

export async function openDownload(
  { url }: Pick<TestApp, 'url'>,
  key: string,
  jobId: string,
  headers: Record<string, string> = {},
): Promise<OpenDownload> {
  return await openStream(`${url}/v1/exports/${jobId}/download`, {
    authorization: `Bearer ${key}`,
    ...headers,
  })
}

/** Retries while a download is refused: on a busy machine, many downloads at once can be for a while. */
export async function openAccepted(
  ...args: Parameters<typeof openDownload>
): Promise<OpenDownload> {
  return await eventually(async () => {
    const opened = await openDownload(...args)
    if (opened.response.statusCode !== 200) opened.leave()
    assert.equal(opened.response.statusCode, 200)
    return opened
  })
}

/** With custom headers. */
export async function openStream(
  address: string,
  headers: Record<string, string>,
): Promise<OpenDownload> {
  const outgoing = request(address, { headers, agent: false })
  outgoing.end()
  const [response]: IncomingMessage[] = await once(outgoing, 'response')
  assert(response)
  // Ignore errors: unless a test reads to the end, it expects the cut.
  for (const emitter of [outgoing, response]) emitter.on('error', () => {})
  return {
    response,
    rest: async () => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(Buffer.from(chunk))
      assert(response.complete, 'the body is complete')
      const body = Buffer.concat(chunks)
      return {
        status: response.statusCode ?? 0,
        headers: response.headers,
        trailers: response.trailers,
        body,
        text: body.toString(),
        sha256: createHash('sha256').update(body).digest('hex'),
      }
    },
    leave: () => outgoing.destroy(),
  }
}

export async function download(
  annals: Pick<TestApp, 'url'>,
  key: string,
  jobId: string,
  headers: Record<string, string> = {},
): Promise<Received> {
  const opened = await openDownload(annals, key, jobId, headers)
  return await opened.rest()
}

/** The rows of a new export, as objects. */
export async function exportRows(
  annals: TestApp,
  key: string,
  options: ExportRequest = {},
): Promise<TestResponse['json'][]> {
  const { text } = await download(annals, key, await makeExport(annals, key, options))
  return parseJsonl(text)
}

export function parseJsonl(text: string): TestResponse['json'][] {
  assert(text === '' || text.endsWith('\n'))
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

/** Parses RFC 4180 strictly. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y
  let row: string[] = []
  while (CELL.lastIndex < text.length) {
    const at = CELL.lastIndex
    const cell = CELL.exec(text)
    assert(cell, `no cell at ${at}: ${JSON.stringify(text.slice(at, at + 100))}`)
    row.push(cell[1]?.replaceAll('""', '"') ?? cell[2] ?? '')
    if (cell[3] === ',') continue
    rows.push(row)
    row = []
  }
  assert.deepEqual(row, [], 'the last line has a line break')
  return rows
}

const EVENTS_PER_CALL = 500
const BYTES_PER_CALL = 2_000_000

/** Stores events in the given order, many per call. */
export async function storeEvents(
  annals: Caller,
  key: string,
  events: readonly object[],
): Promise<void> {
  let batch: object[] = []
  let bytes = 0
  const send = async () => {
    if (batch.length === 0) return
    const body = { events: batch }
    const { status, json, text } = await annals.call('POST', '/v1/events/batch', { key, body })
    assert.equal(status, 200, text)
    for (const result of json.results) assert.equal(result.status, 201, JSON.stringify(result))
    batch = []
    bytes = 0
  }
  for (const event of events) {
    const size = JSON.stringify(event).length
    if (batch.length === EVENTS_PER_CALL || bytes + size > BYTES_PER_CALL) await send()
    batch.push(event)
    bytes += size
  }
  await send()
}

/**
 * More than all buffers between two sockets, so that a client that stops reading causes
 * back-pressure.
 */
export async function storeBulk(annals: Caller, key: string, count: number): Promise<void> {
  const blob = 'x'.repeat(BULK_BYTES)
  const events = Array.from({ length: count }, (_, index) => ({
    category: 'bulk',
    action: `number ${index}`,
    metadata: { blob },
  }))
  await storeEvents(annals, key, events)
}

export const BULK_BYTES = 50_000
