import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { exportAll, growthBySlowClients, rowOf } from './lib/export-client.ts'
import { MIB, peakRssBytesOf } from './lib/processes.ts'
import { benchSeeded, round, type SeededService } from './lib/seeded-service.ts'
import { ROOT } from './lib/service.ts'

const DAYS = 30
const DAY_MS = 86_400_000

/** `npm run bench -- archive`: archives a million events, and exports them again. */
export async function benchArchive(): Promise<void> {
  await benchSeeded('archive', { days: DAYS }, async (seeded) => {
    const bytesPerRow = await measureArchiver(seeded)
    await measureOneDay(seeded)
    const jsonlBytesPerRow = await measureAll(seeded)
    seeded.ratios['archive bytes to JSONL (≤ 0.25)'] = round(bytesPerRow / jsonlBytesPerRow)
    await measureSlowClients(seeded)
  })
}

/** Measures the whole command, including its startup. */
async function measureArchiver(seeded: SeededService): Promise<number> {
  const { env, dataDir, events, rows, ratios } = seeded
  const startedAt = performance.now()
  const { log, peakRssBytes } = await runArchiver(env)
  const seconds = (performance.now() - startedAt) / 1_000
  const archived = Number(/Archived (\d+) events/.exec(log)?.[1] ?? 0)
  if (archived !== events) throw new Error(`${archived} of ${events} events were archived: ${log}`)
  const bytes = sizeOf(join(dataDir, 'archive'))
  rows.push(rowOf('archive', { rows: archived, bytes, seconds, firstByteMs: 0, rssGrowthMb: 0 }))
  ratios['archive rows/s (≥ 20,000)'] = Math.round(archived / seconds)
  ratios['archiver, RSS at its peak, MB'] = Math.round(peakRssBytes / MIB)
  return bytes / archived
}

async function runArchiver(env: Record<string, string>) {
  const before = new Date(Date.now() + 1_000).toISOString()
  const child = spawn(join(ROOT, 'bin/annals'), ['archive', '--before', before], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  let peakRssBytes = 0
  const sample = () => (peakRssBytes = Math.max(peakRssBytes, peakRssBytesOf(child.pid ?? 0)))
  const sampling = setInterval(sample, 100)
  try {
    const log = await text(child.stdout)
    return { log, peakRssBytes }
  } finally {
    clearInterval(sampling)
    await exited
  }
}

function sizeOf(folder: string): number {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.parquet'))
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

async function measureOneDay({ service, workspaceKey, rows, ratios }: SeededService) {
  const fromMs = Date.now() - (DAYS / 2) * DAY_MS
  const day = await exportAll(service, workspaceKey, optionsFor(fromMs, fromMs + DAY_MS))
  rows.push(rowOf('one archived day', day))
  ratios['one archived day, seconds (≤ 2)'] = round(day.seconds)
}

async function measureAll(seeded: SeededService): Promise<number> {
  const { service, workspaceKey, events, rows, ratios } = seeded
  const all = await exportAll(service, workspaceKey, optionsForAll())
  if (all.rows !== events) throw new Error(`${all.rows} of ${events} rows were exported`)
  rows.push(rowOf('all archived', all))
  ratios['all archived, RSS growth, MB (≤ 64)'] = round(all.rssGrowthMb)
  return all.bytes / all.rows
}

async function measureSlowClients({ service, workspaceKey, ratios }: SeededService) {
  const growthMb = await growthBySlowClients(service, workspaceKey, optionsForAll())
  ratios['RSS growth by slow clients of the archive, MB (≤ 64)'] = round(growthMb)
}

function optionsForAll() {
  return optionsFor(Date.now() - (DAYS + 2) * DAY_MS, Date.now() + DAY_MS)
}

function optionsFor(fromMs: number, toMs: number) {
  const filters = { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }
  return { source: 'HOT_AND_ARCHIVED', format: 'JSONL', filters }
}
