import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEngine } from '../../server/src/platform/engine/embedded-postgres.ts'
import { asOwner, type EngineConnection, readSettings } from './engine.ts'
import { benchEnvironment, saveResult, table } from './report.ts'
import { seedEvents } from './seed-events.ts'
import { annals, type Service, startAnnals } from './service.ts'

const EVENTS = Number(process.env.BENCH_EVENTS ?? 1_000_000)

/** A service with one workspace full of events, and the results so far. */
export type SeededService = {
  service: Service
  workspaceKey: string
  events: number
  connection: EngineConnection
  env: Record<string, string>
  dataDir: string
  rows: Record<string, string | number>[]
  ratios: Record<string, number>
}

/**
 * Measures a service with a million events over `days`, verifies them, and prints and saves the results.
 */
export async function benchSeeded(
  name: string,
  { days }: { days: number },
  measure: (seeded: SeededService) => Promise<void>,
): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  const env = { ANNALS_DATA_DIR: dataDir, ANNALS_RATE_LIMITS: 'off' }
  const rows: SeededService['rows'] = []
  const ratios: SeededService['ratios'] = {}
  try {
    await using engine = await startEngine({ dataDir, exclusive: false })
    const { connection } = engine
    const service = await startAnnals(env)
    try {
      const { workspaceKey }: { workspaceKey: string } = JSON.parse(
        annals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE'),
      )
      await seedEvents(service, { key: workspaceKey, count: EVENTS, days })
      await asOwner(connection, (client) => client.query('vacuum (analyze) event'))
      const context = { connection, env, dataDir, rows, ratios }
      await measure({ service, workspaceKey, events: EVENTS, ...context })
    } finally {
      await service[Symbol.asyncDispose]()
    }
    const verified = annals(env, 'verify').trim()
    process.stdout.write(`\n${table(rows)}\n\n`)
    for (const [ratio, value] of Object.entries(ratios)) {
      process.stdout.write(`${ratio}: ${value}\n`)
    }
    process.stdout.write(`${verified}\n`)
    const settings = await readSettings(connection)
    saveResult(name, { ...benchEnvironment(settings), events: EVENTS, rows, ratios, verified })
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

export function round(value: number): number {
  return Number(value.toFixed(3))
}
