import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import { startEngine } from '../server/src/platform/embedded-postgres.ts'
import { asOwner, type EngineConnection, readSettings } from './lib/engine.ts'
import { requestBytes, runLoad } from './lib/http-load.ts'
import { rssBytesOf } from './lib/processes.ts'
import { circumstances, saveResult, table } from './lib/report.ts'
import { sampleEvent } from './lib/sample-event.ts'
import { seedEvents } from './lib/seed-events.ts'
import { annals, type Service, startAnnals } from './lib/service.ts'

const EVENTS = Number(process.env.BENCH_EVENTS ?? 1_000_000)
const DAYS = 30
const SLOW_CLIENTS = 50
const SLOW_BYTES_PER_SECOND = 4_096
const STALL_MS = 10_000
const SECONDS = Number(process.env.BENCH_SECONDS ?? 8)
const DAY_MS = 86_400_000
const MIB = 2 ** 20

type Tenant = { companyKey: string; workspaceKey: string }
type Download = {
  rows: number
  bytes: number
  seconds: number
  firstByteMs: number
  rssGrowthMb: number
}

/** `npm run bench -- export`: a million events as JSONL and CSV, hot, slow, and from the archive. */
export async function benchExport(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  const env = { ANNALS_DATA_DIR: dataDir, ANNALS_RATE_LIMITS: 'off' }
  try {
    await using engine = await startEngine({ dataDir, exclusive: false })
    const service = await startAnnals(env)
    const rows: Record<string, string | number>[] = []
    const ratios: Record<string, number> = {}
    try {
      const tenant: Tenant = JSON.parse(annals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE'))
      await seedEvents(service, { key: tenant.workspaceKey, count: EVENTS, days: DAYS })
      await asOwner(engine.connection, (client) => client.query('vacuum (analyze) event'))
      const jsonlBytes = await measureHot(service, tenant, engine.connection, rows, ratios)
      await measureSlowClients(service, tenant, rows, ratios)
      await measureArchive({ service, tenant, env, dataDir, jsonlBytes }, rows, ratios)
    } finally {
      await service[Symbol.asyncDispose]()
    }
    const verified = annals(env, 'verify').trim()
    process.stdout.write(`\n${table(rows)}\n\n`)
    for (const [name, value] of Object.entries(ratios)) process.stdout.write(`${name}: ${value}\n`)
    process.stdout.write(`${verified}\n`)
    const settings = await readSettings(engine.connection)
    saveResult('export', { ...circumstances(settings), events: EVENTS, rows, ratios, verified })
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function measureHot(
  service: Service,
  { workspaceKey }: Tenant,
  connection: EngineConnection,
  rows: Record<string, string | number>[],
  ratios: Record<string, number>,
): Promise<number> {
  await copyPlain(connection)
  const copy = await copyPlain(connection)
  rows.push(rowOf('copy to stdout', copy))
  let jsonlBytes = 0
  for (const format of ['JSONL', 'CSV'] as const) {
    await exportAll(service, workspaceKey, { source: 'HOT', format, limit: 20_000 })
    const download = await exportAll(service, workspaceKey, { source: 'HOT', format })
    if (download.rows !== EVENTS) throw new Error(`${format}: ${download.rows} rows`)
    rows.push(rowOf(format, download))
    const aim = format === 'CSV' ? 0.6 : 0.5
    ratios[`${format} rows/s to copy (≥ ${aim})`] = round(
      download.rows / download.seconds / (copy.rows / copy.seconds),
    )
    ratios[`${format} first byte, ms (≤ 300)`] = round(download.firstByteMs)
    ratios[`${format} RSS growth, MB (≤ 64)`] = round(download.rssGrowthMb)
    if (format === 'JSONL') jsonlBytes = download.bytes
  }
  return jsonlBytes
}

/** The same columns as the exporter reads, as fast as the database gives them. */
async function copyPlain(connection: EngineConnection): Promise<Download> {
  const client = new Client(connection)
  await client.connect()
  const startedAt = performance.now()
  const stream = client.query(
    copyTo(`copy (select seq, id, ts, received_at, company_id, project_id, category, action, actor,
                         resource, metadata, trace_id, hash, prev_hash, sealed, salts
                    from event) to stdout`),
  )
  let bytes = 0
  let rows = 0
  for await (const chunk of stream) {
    bytes += chunk.length
    rows += countLines(chunk)
  }
  const seconds = (performance.now() - startedAt) / 1_000
  await client.end()
  return { rows, bytes, seconds, firstByteMs: 0, rssGrowthMb: 0 }
}

function countLines(chunk: Buffer): number {
  let lines = 0
  for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines += 1
  return lines
}

type Wish = { source: string; format: string; filters?: object; limit?: number }

async function createJob(service: Service, key: string, wish: Wish): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${service.port}/v1/exports`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      // One that was kept may just be closed by the service, after a long download.
      connection: 'close',
    },
    body: JSON.stringify(wish),
  })
  const text = await response.text()
  if (response.status !== 201) throw new Error(text)
  return JSON.parse(text).jobId
}

async function exportAll(service: Service, key: string, wish: Wish): Promise<Download> {
  const jobId = await createJob(service, key, wish)
  const before = rssBytesOf(service.pid)
  let peak = before
  const sampling = setInterval(() => (peak = Math.max(peak, rssBytesOf(service.pid))), 50)
  const startedAt = performance.now()
  const response = await new Promise<IncomingMessage>((resolve, reject) =>
    get(
      {
        host: '127.0.0.1',
        port: service.port,
        path: `/v1/exports/${jobId}/download`,
        headers: { authorization: `Bearer ${key}` },
      },
      resolve,
    ).on('error', reject),
  )
  if (response.statusCode !== 200) throw new Error(`a download was answered ${response.statusCode}`)
  const hash = createHash('sha256')
  let firstByteMs = 0
  let bytes = 0
  let rows = wish.format === 'CSV' ? -1 : 0
  for await (const chunk of response) {
    if (firstByteMs === 0) firstByteMs = performance.now() - startedAt
    hash.update(chunk)
    bytes += chunk.length
    rows += countLines(chunk)
  }
  clearInterval(sampling)
  if (response.trailers['x-content-sha256'] !== hash.digest('hex')) {
    throw new Error('the trailer names another digest')
  }
  const seconds = (performance.now() - startedAt) / 1_000
  return { rows, bytes, seconds, firstByteMs, rssGrowthMb: (peak - before) / MIB }
}

/** Many readers that hardly read, beside ingest. */
async function measureSlowClients(
  service: Service,
  { workspaceKey: key }: Tenant,
  rows: Record<string, string | number>[],
  ratios: Record<string, number>,
): Promise<void> {
  await ingest(service, key)
  const alone = await ingest(service, key)
  const before = rssBytesOf(service.pid)
  const clients = await Promise.all(
    Array.from({ length: SLOW_CLIENTS }, () => readSlowly(service, key)),
  )
  // The system's buffers take the first megabytes of each; from then on the clients are slow.
  await new Promise((resolve) => setTimeout(resolve, STALL_MS))
  const beside = await ingest(service, key)
  const growthMb = (rssBytesOf(service.pid) - before) / MIB
  for (const client of clients) client.destroy()
  rows.push({ name: 'ingest alone', 'rows/s': alone.perSecond, 'p99 ms': alone.p99Ms })
  rows.push({ name: 'ingest, 50 slow', 'rows/s': beside.perSecond, 'p99 ms': beside.p99Ms })
  ratios['ingest p99 beside slow clients (≤ 1.5)'] = round(beside.p99Ms / alone.p99Ms)
  ratios['RSS growth by slow clients, MB (≤ 64)'] = round(growthMb)
}

async function ingest(service: Service, key: string) {
  let nth = 0
  return await runLoad({
    port: service.port,
    connections: 32,
    durationMs: SECONDS * 1_000,
    request: () => {
      nth += 1
      return requestBytes('POST', '/v1/events', { key, body: JSON.stringify(sampleEvent(nth)) })
    },
  })
}

async function readSlowly(service: Service, key: string) {
  const jobId = await createJob(service, key, { source: 'HOT', format: 'JSONL' })
  const socket = connect(service.port, '127.0.0.1')
  socket.write(requestBytes('GET', `/v1/exports/${jobId}/download`, { key }))
  const timer = setInterval(() => void socket.read(SLOW_BYTES_PER_SECOND), 1_000)
  socket.on('close', () => clearInterval(timer))
  socket.on('error', () => {})
  return socket
}

async function measureArchive(
  {
    service,
    tenant,
    env,
    dataDir,
    jsonlBytes,
  }: {
    service: Service
    tenant: Tenant
    env: Record<string, string>
    dataDir: string
    jsonlBytes: number
  },
  rows: Record<string, string | number>[],
  ratios: Record<string, number>,
): Promise<void> {
  const startedAt = performance.now()
  const said = annals(env, 'archive', '--before', new Date(Date.now() + 1_000).toISOString())
  const seconds = (performance.now() - startedAt) / 1_000
  const archived = Number(/archived (\d+) events/.exec(said)?.[1] ?? 0)
  const bytes = sizeOf(join(dataDir, 'archive'))
  rows.push(rowOf('archive', { rows: archived, bytes, seconds, firstByteMs: 0, rssGrowthMb: 0 }))
  ratios['archive rows/s (≥ 20,000)'] = Math.round(archived / seconds)
  ratios['archive bytes to JSONL (≤ 0.25)'] = round(bytes / archived / (jsonlBytes / EVENTS))
  const fromMs = Date.now() - 15 * DAY_MS
  const filters = {
    from: new Date(fromMs).toISOString(),
    to: new Date(fromMs + DAY_MS).toISOString(),
  }
  const day = await exportAll(service, tenant.workspaceKey, {
    source: 'HOT_AND_ARCHIVED',
    format: 'JSONL',
    filters,
  })
  rows.push(rowOf('one archived day', day))
  ratios['one archived day, seconds (≤ 2)'] = round(day.seconds)
  const all = await exportAll(service, tenant.workspaceKey, {
    source: 'HOT_AND_ARCHIVED',
    format: 'JSONL',
    filters: {
      from: new Date(Date.now() - (DAYS + 2) * DAY_MS).toISOString(),
      to: new Date(Date.now() + DAY_MS).toISOString(),
    },
  })
  if (all.rows !== archived) throw new Error(`${all.rows} of ${archived} rows came back`)
  rows.push(rowOf('all archived', all))
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.parquet'))
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

function rowOf(name: string, { rows, bytes, seconds, firstByteMs, rssGrowthMb }: Download) {
  return {
    name,
    rows,
    seconds,
    'rows/s': rows / seconds,
    'MB/s': bytes / seconds / MIB,
    'bytes/row': bytes / Math.max(1, rows),
    'first byte ms': firstByteMs,
    'RSS growth MB': rssGrowthMb,
  }
}

function round(value: number): number {
  return Number(value.toFixed(3))
}
