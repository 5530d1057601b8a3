import { type App, startApp } from '../../app.ts'
import type { Config } from '../../config.ts'
import { CONNECTIONS_PER_PROCESS, openDataSource } from '../../data-source.ts'
import type { MergeMetrics } from '../../edge/serve-metrics.ts'
import { listenForScrapes } from '../../listen.ts'
import { refuseOccupiedPorts } from '../../listen-ports.ts'
import { droppedLines, type Logger } from '../../platform/logger.ts'
import { createMetrics } from '../../platform/metrics.ts'
import { Database, isOutage } from '../../platform/pg/database.ts'
import { SERVER_WAIT_MS_MAX } from '../../platform/pg/wait-for-server.ts'
import { monotonicClock } from '../../platform/time/clock.ts'
import { untilAborted } from '../../platform/time/deadline.ts'
import type { ServeRole } from '../../serve-role.ts'
import { readServerSettings } from '../doctor/doctor-store.ts'
import { ApiProcesses } from './api-processes.ts'
import { mergeMetrics } from './merge-metrics.ts'

/** What a running service offers, whether it consists of one process or of several. */
export type Service = AsyncDisposable &
  Pick<App, 'url' | 'metricsUrl' | 'metrics' | 'database' | 'dataSource' | 'isWriting'>

type StartOptions = {
  config: Config
  logger: Logger
  role: ServeRole
  pagesFolder: string | null
  signal: AbortSignal
}

/**
 * Starts the API in several processes and supervises them. This process owns the data folder, runs the background
 * work and serves the metrics of all. On a stop, the API processes stop first. If they take too long, the rest stops
 * meanwhile, and the last process to leave stops the engine.
 */
export async function startProcesses(options: StartOptions): Promise<Service> {
  const { config, logger, role, pagesFolder, signal } = options
  await using stack = new AsyncDisposableStack()
  await refuseOccupiedPorts(config, role)
  const { port, apiProcesses: count } = config
  const processes = new ApiProcesses({ count, port, pagesFolder, logger })
  stack.defer(async () => {
    await processes.end()
    if (processes.hasFailed) process.exitCode = 1
  })
  const merge: MergeMetrics = async (own) => {
    const { texts, missing } = await processes.readMetrics()
    core?.metrics.processScrapesFailed.inc(missing)
    return mergeMetrics(new Map([[0, own], ...texts]))
  }
  let core: Core | null = null
  core = await startCore(stack, { ...options, mergeMetrics: merge })
  await warnFewConnections(core.database, options)
  stack.defer(() => processes.stop())
  const url = await untilAborted(processes.start(), signal)
  const kept = stack.move()
  return {
    ...core,
    url,
    isWriting: () => processes.hasFailed,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

type Core = Pick<App, 'metricsUrl' | 'metrics' | 'database' | 'dataSource'>

async function startCore(
  stack: AsyncDisposableStack,
  { config, logger, role, signal, mergeMetrics }: StartOptions & { mergeMetrics: MergeMetrics },
): Promise<Core> {
  const serverWaitMsMax = SERVER_WAIT_MS_MAX
  if (role === 'all') {
    const options = { config, logger, signal, serverWaitMsMax, mergeMetrics }
    return stack.use(await startApp({ ...options, role: 'worker' }))
  }
  const opening = { logger, exclusive: true, mayCreate: true, serverWaitMsMax, signal }
  const dataSource = stack.use(await openDataSource(config, opening))
  const { connection } = dataSource
  const database = stack.use(
    new Database({ connection, role: 'annals_serving', connectionsMax: 1, logger }),
  )
  const metrics = createMetrics({ countDroppedLines: () => droppedLines(logger) })
  const refresh = async () => {}
  const scrapes = { metrics, monotonic: monotonicClock, logger, refresh, mergeMetrics }
  return {
    metricsUrl: await listenForScrapes(stack, config, scrapes),
    metrics,
    database,
    dataSource,
  }
}

/** A database that was set up or started for fewer processes refuses connections under load. */
async function warnFewConnections(
  { db }: Database,
  { config, logger }: Pick<StartOptions, 'config' | 'logger'>,
): Promise<void> {
  const needed = config.apiProcesses * CONNECTIONS_PER_PROCESS
  try {
    const { freeConnections: free } = await readServerSettings(db)
    if (free < needed) logger.warn({ event: 'connections.few', free, needed })
  } catch (error) {
    // The service also starts during an outage.
    if (!isOutage(error)) throw error
  }
}
