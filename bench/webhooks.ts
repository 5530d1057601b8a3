import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEngine } from '../server/src/platform/engine/embedded-postgres.ts'
import { multiNodeEnv, readSettings, warmUpEngine } from './lib/engine.ts'
import { benchEnvironment, saveResult, table } from './lib/report.ts'
import { annals, postmasterPid } from './lib/service.ts'
import { verifyWritten } from './lib/verify-written.ts'
import { measureBacklog } from './webhook/backlog.ts'
import { measureBadReceivers, RECEIVERS } from './webhook/bad-receivers.ts'
import { measureCpu } from './webhook/cpu.ts'
import { measureLatency } from './webhook/latency.ts'
import { startReceiver } from './webhook/receiver.ts'
import { type Part, SECONDS, type Setup } from './webhook/setup.ts'
import { measureThroughput } from './webhook/throughput.ts'
import { verifyArrived } from './webhook/verify-arrived.ts'

/** The order matters: the last part leaves deliveries behind that would disturb the others. */
const PARTS: Record<string, (setup: Setup) => Promise<Part>> = {
  throughput: measureThroughput,
  latency: measureLatency,
  cpu: measureCpu,
  receivers: measureBadReceivers,
  backlog: measureBacklog,
}

/** `npm run bench -- webhooks [part]`: measures webhook deliveries, all parts or one. */
export async function benchWebhooks(only: string | undefined): Promise<void> {
  const chosen = Object.entries(PARTS).filter(([name]) => only === undefined || name === only)
  if (chosen.length === 0) throw new Error(`the parts are ${Object.keys(PARTS).join(', ')}`)
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  try {
    await using engine = await startEngine({ dataDir, exclusive: false })
    const { connection } = engine
    await using receiver = await startReceiver(RECEIVERS)
    const setup: Setup = {
      connection,
      postmaster: postmasterPid(dataDir),
      env: {
        ...multiNodeEnv(connection),
        ANNALS_DATA_DIR: dataDir,
        ANNALS_WEBHOOK_DESTINATIONS: 'any',
      },
      receiver,
      acknowledged: [],
      owed: new Map(),
    }
    await warmUpEngine(connection)
    const parts: Record<string, Part> = {}
    for (const [name, measure] of chosen) {
      const part = await measure(setup)
      parts[name] = part
      process.stdout.write(`\n${name}\n${table(part.rows)}\n`)
    }
    const arrived = await verifyArrived(setup)
    const written = await verifyWritten(connection, setup.acknowledged, () =>
      annals(setup.env, 'verify'),
    )
    finish(parts, [arrived, written], await readSettings(connection), only)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function finish(
  parts: Record<string, Part>,
  verified: readonly string[],
  settings: Record<string, string>,
  only: string | undefined,
): void {
  const figures = Object.fromEntries(
    Object.values(parts)
      .flatMap((part) => Object.entries(part.figures))
      .map(([name, value]) => [name, Number(value.toFixed(3))]),
  )
  process.stdout.write('\n')
  for (const [name, value] of Object.entries(figures)) process.stdout.write(`${name}: ${value}\n`)
  for (const line of verified) process.stdout.write(`${line}\n`)
  if (only !== undefined) return
  const rows = Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, part.rows]))
  const path = saveResult('webhooks', {
    ...benchEnvironment(settings),
    seconds: SECONDS,
    rows,
    figures,
    verified,
  })
  process.stdout.write(`saved ${path}\n`)
}
