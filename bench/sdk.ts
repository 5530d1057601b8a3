import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Annals, type EventInput } from '../sdk/src/index.ts'
import { diskSpool } from '../sdk/src/node/disk-spool.ts'
import { startEngine } from '../server/src/platform/engine/embedded-postgres.ts'
import { readSettings, SECRET_KEY, warmUpEngine } from './lib/engine.ts'
import { cpuUsOf, postgresCpuUs } from './lib/processes.ts'
import { benchEnvironment, saveResult, table } from './lib/report.ts'
import { sampleEvent } from './lib/sample-event.ts'
import { annals as runAnnals, postmasterPid, type Service, startAnnals } from './lib/service.ts'

const EVENTS = Number(process.env.BENCH_EVENTS ?? 100_000)
const WARM_UP_EVENTS = Math.min(20_000, EVENTS)
/** How often callers let the requests go on, as a server does between its own requests. */
const EVENTS_PER_TURN = 20
const QUEUED_MAX = 5_000

type Row = {
  name: string
  perSecond: number
  callerUs: number
  /** Of `record` alone. */
  recordUs: number
  serviceUs: number
}

/**
 * `npm run bench -- sdk`: one process records events with a recorder, as fast as the queue takes them, until
 * the service has stored them all. The CPU time of the caller includes the requests and their responses.
 */
export async function benchSdk(): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'annals-bench-'))
  const env = {
    ANNALS_DATA_DIR: dataDir,
    ANNALS_SECRET_KEY: SECRET_KEY,
    ANNALS_RATE_LIMITS: 'off',
  }
  try {
    await using engine = await startEngine({ dataDir, exclusive: false })
    await warmUpEngine(engine.connection)
    const created = JSON.parse(runAnnals(env, 'bootstrap', '--json', '--plan', 'ENTERPRISE'))
    const { workspaceKey }: { workspaceKey: string } = created
    const postmaster = postmasterPid(dataDir)
    const rows: Row[] = []
    let stored = 0
    {
      await using service = await startAnnals(env)
      const measure = async (name: string, count: number, spool: boolean) => {
        const measured = await record({ service, workspaceKey, postmaster, count, spool })
        stored += count
        if (name) rows.push({ name, ...measured })
      }
      await measure('', WARM_UP_EVENTS, false)
      await measure('memory', EVENTS, false)
      await measure('disk spool', EVENTS, true)
    }
    const verified = runAnnals(env, 'verify').trim()
    const settings = await readSettings(engine.connection)
    process.stdout.write(`${table(rows)}\n${verified}\n`)
    const [memory] = rows
    const ratios = {
      'events/s of a recorder (≥ 10,000)': Math.round(memory?.perSecond ?? 0),
      'CPU µs per event of the caller (≤ 20)': Number((memory?.callerUs ?? 0).toFixed(1)),
    }
    process.stdout.write(`${JSON.stringify(ratios)}\n`)
    saveResult('sdk', { ...benchEnvironment(settings), events: stored, rows, ratios, verified })
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function record({
  service,
  workspaceKey,
  postmaster,
  count,
  spool,
}: {
  service: Service
  workspaceKey: string
  postmaster: number
  count: number
  spool: boolean
}): Promise<Omit<Row, 'name'>> {
  const folder = mkdtempSync(join(tmpdir(), 'annals-bench-spool-'))
  // Made beforehand, because an application has its events anyway.
  const events = Array.from({ length: count }, (_, nth) => toInput(sampleEvent(nth)))
  const annals = new Annals({ apiKey: workspaceKey, baseUrl: `http://127.0.0.1:${service.port}` })
  const recorder = annals.recorder({
    maxQueue: QUEUED_MAX,
    ...(spool && { spool: diskSpool({ folder }) }),
  })
  const serviceBefore = cpuUsOf(service.pid) + postgresCpuUs(postmaster)
  const before = process.cpuUsage()
  const startedAtMs = performance.now()
  let recordUs = 0
  let recorded = 0
  for (let start = 0; start < count; start += EVENTS_PER_TURN) {
    const turn = events.slice(start, start + EVENTS_PER_TURN)
    if (recorder.stats.queued > QUEUED_MAX - EVENTS_PER_TURN) {
      // The service is slower than this loop.
      for (const event of turn) await recorder.recordOrWait(event)
      continue
    }
    const cpu = process.cpuUsage()
    for (const event of turn) recorder.record(event)
    const used = process.cpuUsage(cpu)
    recordUs += used.user + used.system
    recorded += turn.length
    await new Promise((resolve) => setImmediate(resolve))
  }
  await recorder.flush()
  const { stored } = await recorder.close()
  const seconds = (performance.now() - startedAtMs) / 1_000
  const { user, system } = process.cpuUsage(before)
  const serviceUs = cpuUsOf(service.pid) + postgresCpuUs(postmaster) - serviceBefore
  rmSync(folder, { recursive: true, force: true })
  if (stored !== count) throw new Error(`${stored} of ${count} events were stored`)
  return {
    perSecond: count / seconds,
    callerUs: (user + system) / count,
    recordUs: recordUs / recorded,
    serviceUs: serviceUs / count,
  }
}

/** Without a key of its own: the recorder generates one, as it does for an application. */
function toInput(event: Record<string, unknown>): EventInput {
  delete event.idempotencyKey
  return { category: '', action: '', ...event }
}
