import { createHash } from 'node:crypto'
import { get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { type ExportFormat, ExportRows } from './export-rows.ts'
import { checkReply, pause, type SoakContext } from './soak-context.ts'

/** How a client reads its download. */
export type DownloadStyle = 'fast' | 'slow' | 'hang up'
export type ExportJob = { id: string; key: string; format: ExportFormat }
export type Download = { sha256: string; rows: ExportRows }

const TRIES_MAX = 60
const RETRY_PAUSE_MS = 500
const HANG_UP_BYTES = 100_000
const SLOW_CHUNK_MS = 15
/** A slow client speeds up after this time, otherwise a large export would never end. */
const SLOW_MS_MAX = 5_000

/** Reopens the download until it is complete. Null if that fails. */
export async function downloadWhole(
  soak: SoakContext,
  job: ExportJob,
  style: DownloadStyle,
): Promise<Download | null> {
  let { id } = job
  if (style === 'hang up') {
    const outcome = await readOnce(soak, job, 'hang up')
    if (typeof outcome === 'object') return outcome
  }
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const outcome = await readOnce(soak, { ...job, id }, style === 'slow' ? 'slow' : 'fast')
    if (typeof outcome === 'object') return outcome
    if (outcome === 'over') {
      // The last bytes were lost in transit after the service had sent them.
      const rerun = await rerunJob(soak, { ...job, id })
      if (rerun === null) return null
      id = rerun
    }
    await pause(soak, RETRY_PAUSE_MS)
    if (soak.stopping.aborted && !soak.isFinal) return null
  }
  soak.verdicts.check('exports', false, () => `no download of ${id} completed`)
  return null
}

/** A new job with the same snapshot. Null if the service is down or the job has failed. */
export async function rerunJob(soak: SoakContext, job: ExportJob): Promise<string | null> {
  const reply = await soak.http.send('GET', `/v1/exports/${job.id}`, { key: job.key })
  checkReply(soak, 'export job', reply, [200, 503])
  if (reply.status !== 200) return null
  const { status } = reply.json
  const hasFailed = status === 'FAILED' || status === 'CANCELED'
  soak.verdicts.check('exports', !hasFailed, () => `a job failed: ${reply.text}`)
  const again = await soak.http.send('POST', `/v1/exports/${job.id}/rerun`, { key: job.key })
  checkReply(soak, 'export rerun', again, [201, 503])
  return again.status === 201 ? again.json.jobId : null
}

/** `broken`: retry. `over`: the job has ended. */
async function readOnce(
  soak: SoakContext,
  job: ExportJob,
  style: DownloadStyle,
): Promise<Download | 'broken' | 'over'> {
  const response = await open(soak, job)
  const status = response?.statusCode ?? null
  soak.tally.count('export download', status === null ? 'broken' : String(status))
  if (!response || status !== 200) {
    const body = response ? await text(response).catch(() => '') : ''
    const isAllowed = status === null || status === 409 || status === 503
    soak.verdicts.check('responses', isAllowed, () => `a download returned ${status}: ${body}`)
    return status === 409 ? 'over' : 'broken'
  }
  const hash = createHash('sha256')
  const rows = new ExportRows(soak, job.format)
  const isWhole = await readBody(response, style, (chunk) => hash.update(chunk), rows)
  soak.tally.count('export download', isWhole ? 'whole' : 'cut')
  if (!isWhole) return 'broken'
  const sha256 = hash.digest('hex')
  const isNamed = response.trailers['x-content-sha256'] === sha256
  soak.verdicts.check('exports', isNamed, () => `the trailer of ${job.id} has a different digest`)
  soak.tally.count('export download', 'rows', rows.rowCount)
  return { sha256, rows }
}

function open({ service }: SoakContext, { id, key }: ExportJob): Promise<IncomingMessage | null> {
  return new Promise((resolve) => {
    const request = get(`${service.url}/v1/exports/${id}/download`, {
      agent: false,
      headers: { authorization: `Bearer ${key}` },
    })
    request.on('response', resolve)
    request.on('error', () => resolve(null))
  })
}

/** True if the body is complete. Rows are checked as they arrive and not kept. */
async function readBody(
  response: IncomingMessage,
  style: DownloadStyle,
  onChunk: (chunk: Buffer) => void,
  rows: ExportRows,
): Promise<boolean> {
  const slowUntilMs = performance.now() + SLOW_MS_MAX
  const decoder = new TextDecoder()
  let bytes = 0
  let rest = ''
  response.on('error', () => {})
  try {
    for await (const chunk of response) {
      onChunk(chunk)
      bytes += chunk.length
      const lines = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/)
      rest = lines.pop() ?? ''
      for (const line of lines) rows.readLine(line)
      if (style === 'hang up' && bytes > HANG_UP_BYTES) return false
      if (style === 'slow' && performance.now() < slowUntilMs) await delay(SLOW_CHUNK_MS)
    }
  } catch {
    return false
  }
  return response.complete && rest === ''
}
