import { setTimeout as delay } from 'node:timers/promises'
import { archiveOnce, runArchiver, tomorrow } from './archive-load.ts'
import { browseDashboard } from './dashboard-load.ts'
import { checkDeliveries, drainDeliveries } from './delivery-check.ts'
import { SentEvents } from './sent-events.ts'
import { exportEvents } from './export-load.ts'
import { type FaultRecord, injectFaults } from './fault-loop.ts'
import { FAULT_KINDS, type FaultKind, terminate } from './faults.ts'
import { HttpClient } from './http-client.ts'
import { sendEvents } from './ingest-load.ts'
import { checkLedger, verifyLedger } from './ledger-check.ts'
import { followLive } from './live-tail-load.ts'
import { type MemoryTrend, memoryTrend } from './memory-trend.ts'
import { Monitor } from './monitor.ts'
import { walkQueries } from './query-load.ts'
import { Recovery } from './recovery.ts'
import {
  checkDrafts,
  checkFiles,
  checkResources,
  type IdleLevel,
  readIdleLevel,
} from './resource-check.ts'
import { scrape } from './scrape-load.ts'
import { SeededRandom } from './seeded-random.ts'
import { ServiceLog } from './service-log.ts'
import type { SoakContext } from './soak-context.ts'
import { SoakReceivers } from './soak-receivers.ts'
import { SoakService } from './soak-service.ts'
import { Tally } from './tally.ts'
import { type Verdict, Verdicts } from './verdicts.ts'
import { World } from './world.ts'

export type SoakOptions = {
  minutes: number
  /** Determines the order of the faults. */
  seed: number
  eventsPerSecond: number
  /** All kinds by default. */
  faults?: readonly FaultKind[]
  /** A file for the complete log of the service. */
  logFile?: string
  /** Called with each progress line and each failed check. */
  onProgress: (line: string) => void
}

export type SoakResult = {
  seed: number
  minutes: number
  eventsSent: number
  eventsStored: number
  faultsSkipped: string | null
  activities: Tally
  faults: FaultRecord[]
  verdicts: Verdict[]
  logErrors: Record<string, number>
  memory: MemoryTrend | null
  idle: IdleLevel
  afterLoad: IdleLevel
  driverRssMbMax: number
}

const SAMPLE_MS = 10_000
const CALM_MS_MAX = 8_000
const NO_FULL_DISK =
  'the disk was not filled: this requires root and permission to mount a file system'

/** Uses every part of a real service at once, injects faults repeatedly, and checks the outcome. */
export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const { minutes, seed, onProgress } = options
  const durationMs = minutes * 60_000
  const stop = new AbortController()
  await using stack = new AsyncDisposableStack()
  const service = stack.use(await SoakService.start(new ServiceLog(options.logFile ?? null)))
  const monitor = new Monitor(service)
  const verdicts = new Verdicts((line) => onProgress(`FAILED ${line}`))
  const http = stack.use(new HttpClient(() => service.url))
  const world = await World.create(service)
  const base = { book: new SentEvents(), tally: new Tally(), random: new SeededRandom(seed + 1) }
  const receivers = stack.use(await SoakReceivers.start({ http, world, verdicts, ...base }))
  const shared = { service, world, http, receivers, verdicts, recovery: new Recovery(), ...base }
  const soak: SoakContext = { ...shared, stopping: stop.signal, isFinal: false }
  const idle = await readIdleLevel(service, monitor)
  const canFill = service.folder.canFill
  const wanted = options.faults ?? FAULT_KINDS
  const kinds = wanted.filter((kind) => kind !== 'fill the disk' || canFill)
  const faults: FaultRecord[] = []
  const injecting = injectFaults(soak, {
    kinds,
    random: new SeededRandom(seed),
    durationMs,
    calmMs: Math.min(CALM_MS_MAX, durationMs / 20),
    onRecord: (record) => faults.push(record),
  })
  await Promise.all([
    ...startLoad(soak, { ...options, durationMs }),
    watch(soak, { monitor, faults, onProgress }),
    endLoad(stop, { durationMs, injecting }),
  ])
  onProgress('The load has ended. Checking…')
  const end = await checkEnd({ ...soak, isFinal: true }, { monitor, idle, durationMs })
  return {
    seed,
    minutes,
    eventsSent: soak.book.count,
    eventsStored: end.stored,
    faultsSkipped: wanted.includes('fill the disk') && !canFill ? NO_FULL_DISK : null,
    activities: soak.tally,
    faults,
    verdicts: verdicts.list,
    logErrors: service.log.errors,
    memory: end.memory,
    idle,
    afterLoad: end.afterLoad,
    driverRssMbMax: monitor.driverRssMbMax,
  }
}

function startLoad(
  soak: SoakContext,
  { eventsPerSecond, durationMs }: SoakOptions & { durationMs: number },
): Promise<void>[] {
  const { companies } = soak.world
  const activities = [
    sendEvents(soak, eventsPerSecond),
    walkQueries(soak),
    exportEvents(soak),
    exportEvents(soak),
    runArchiver(soak, Math.min(60_000, durationMs / 6)),
    scrape(soak),
    ...companies.map((company) => browseDashboard(soak, company)),
    ...companies.map((company) => followLive(soak, company)),
  ]
  // A response that an activity can't read ends this activity, not the soak test.
  return activities.map((activity) =>
    activity.catch((error: unknown) => {
      soak.verdicts.check('responses', false, () => `an activity ended: ${describeError(error)}`)
    }),
  )
}

function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

/** Samples the service and reports progress. */
async function watch(
  { book, recovery, stopping, tally }: SoakContext,
  { monitor, faults, onProgress }: Progress,
): Promise<void> {
  const startedAtMs = performance.now()
  for (;;) {
    await delay(SAMPLE_MS, undefined, { signal: stopping }).catch(() => {})
    if (stopping.aborted) return
    const sample = recovery.isFaultActive ? null : await monitor.sample()
    const seconds = Math.round((performance.now() - startedAtMs) / 1_000)
    const memory = sample ? `, ${Math.round(sample.rssMb)} MB, ${sample.descriptors} files` : ''
    onProgress(
      `${seconds} s: ${book.count} events, ${tally.of('delivery', 'accepted')} deliveries, ` +
        `${tally.of('export download', 'whole')} exports, ${faults.length} faults${memory}`,
    )
  }
}

type Progress = Pick<SoakOptions, 'onProgress'> & { monitor: Monitor; faults: FaultRecord[] }

/** The load outlasts the last fault. Without it, no event would show that the service has recovered. */
async function endLoad(
  stop: AbortController,
  { durationMs, injecting }: { durationMs: number; injecting: Promise<void> },
): Promise<void> {
  await Promise.all([delay(durationMs, undefined, { ref: false }), injecting])
  stop.abort()
}

type EndOptions = { monitor: Monitor; idle: IdleLevel; durationMs: number }

async function checkEnd(soak: SoakContext, { monitor, idle, durationMs }: EndOptions) {
  const { service, http, verdicts } = soak
  // A short soak test doesn't wait for leases to expire; leased deliveries are still due.
  const settleMsMax = Math.min(120_000, Math.max(15_000, durationMs / 4))
  await drainDeliveries(soak, settleMsMax)
  const stored = await checkLedger(soak)
  await checkDeliveries(soak)
  // This run also deletes the drafts of a killed archiver.
  await archiveOnce(soak, tomorrow())
  await verifyLedger(soak, 'the last archive run')
  await checkFiles(service, verdicts)
  http.cutAll()
  const afterLoad = await checkResources(
    { service, monitor, verdicts },
    { idle, settleMsMax: Math.max(30_000, settleMsMax) },
  )
  const memory = memoryTrend(monitor.samples)
  const isSteady = memory?.isSteady ?? true
  verdicts.check('memory', isSteady, () => JSON.stringify(memory))
  await terminate(soak)
  const left = service.folder.postgresPids()
  verdicts.check('shutdown', left.length === 0, () => `PostgreSQL still runs: ${left.join(' ')}`)
  checkDrafts(service, verdicts)
  verdicts.check('log', true, () => '')
  for (const alarm of service.log.alarms) verdicts.check('log', false, () => alarm)
  return { stored, memory, afterLoad }
}
