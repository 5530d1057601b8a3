import { Client } from 'pg'
import { to as copyTo } from 'pg-copy-streams'
import type { EngineConnection } from './lib/engine.ts'
import {
  countLines,
  type Download,
  exportAll,
  growthBySlowClients,
  rowOf,
} from './lib/export-client.ts'
import { requestBytes, runLoad } from './lib/http-load.ts'
import { sampleEvent } from './lib/sample-event.ts'
import { benchSeeded, round, type SeededService } from './lib/seeded-service.ts'
import type { Service } from './lib/service.ts'

const DAYS = 30
const SECONDS = Number(process.env.BENCH_SECONDS ?? 8)

/** `npm run bench -- export`: exports a million events as JSONL and CSV, and measures slow clients. */
export async function benchExport(): Promise<void> {
  await benchSeeded('export', { days: DAYS }, async (seeded) => {
    await measureHot(seeded)
    await measureSlowClients(seeded)
  })
}

async function measureHot(seeded: SeededService): Promise<void> {
  const { service, workspaceKey, events, connection, rows, ratios } = seeded
  await copyPlain(connection)
  const copy = await copyPlain(connection)
  rows.push(rowOf('copy to stdout', copy))
  for (const format of ['JSONL', 'CSV'] as const) {
    await exportAll(service, workspaceKey, { source: 'HOT', format, limit: 20_000 })
    const download = await exportAll(service, workspaceKey, { source: 'HOT', format })
    if (download.rows !== events) throw new Error(`${format}: ${download.rows} rows`)
    rows.push(rowOf(format, download))
    const aim = format === 'CSV' ? 0.6 : 0.5
    ratios[`${format} rows/s to copy (≥ ${aim})`] = round(
      download.rows / download.seconds / (copy.rows / copy.seconds),
    )
    ratios[`${format} first byte, ms (≤ 300)`] = round(download.firstByteMs)
    ratios[`${format} RSS growth, MB (≤ 64)`] = round(download.rssGrowthMb)
  }
}

/** Copies the columns that the exporter reads, as fast as the database can. */
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

/** Measures ingest beside many clients that hardly read. */
async function measureSlowClients(seeded: SeededService): Promise<void> {
  const { service, workspaceKey: key, rows, ratios } = seeded
  await ingest(service, key)
  const alone = await ingest(service, key)
  let beside = alone
  const growthMb = await growthBySlowClients(
    service,
    key,
    { source: 'HOT', format: 'JSONL' },
    async () => {
      beside = await ingest(service, key)
    },
  )
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
