import { once } from 'node:events'
import { type App, startApp } from '../app.ts'
import type { Config } from '../config.ts'
import { OperatorError } from '../errors.ts'
import { endProcess } from '../platform/end-process.ts'
import { limitHeapGrowth } from '../platform/heap-growth.ts'
import { createLogger, type Logger, printText } from '../platform/logger.ts'
import { isOutage } from '../platform/pg/database.ts'
import { SERVER_WAIT_MS_MAX } from '../platform/pg/wait-for-server.ts'
import { ProcessFaults } from '../platform/process-faults.ts'
import type { StopSignals } from '../platform/stop-signals.ts'
import type { ServeRole } from '../serve-role.ts'
import { hasCompanies } from '../tenancy/company-store.ts'
import { DEFAULT_ALLOWLIST } from './bootstrap.ts'
import { ensurePages, type Pages } from './build-pages.ts'
import { type Service, startProcesses } from './processes/start-processes.ts'
import { SupervisorLink } from './processes/supervisor-link.ts'
import { createCompany } from '../tenancy/create-company.ts'

/** Requests get 5 s, background work 3.5 s. Orchestrators kill the process after 10 s or more. */
const STOP_MS_MAX = 9_500
/** Less, so that the supervisor sees the exit code. */
const API_PROCESS_STOP_MS_MAX = 9_000
const INTAKE = new URL('../intake/', import.meta.url).href

/** `annals serve`: runs until it receives a stop signal, then shuts down cleanly. */
export async function serve(
  config: Config,
  { role, stopSignals }: { role: ServeRole; stopSignals: StopSignals },
): Promise<void> {
  using _heapLimit = limitHeapGrowth()
  using link = await SupervisorLink.open()
  if (link) return await serveSupervised(config, { link, stopSignals })
  const logger = createLogger(config.logLevel)
  let pages: Pages | null = null
  const start = async (signal: AbortSignal) => {
    pages = role === 'worker' ? null : await ensurePages(logger, undefined, signal)
    const options = { config, logger, role, pagesFolder: pages?.folder ?? null, signal }
    if (role !== 'worker' && config.apiProcesses > 1) return await startProcesses(options)
    return await startApp({ ...options, serverWaitMsMax: SERVER_WAIT_MS_MAX })
  }
  const announce = async (app: Service) => {
    logger.info({ event: 'service.started', role, url: app.url, metricsUrl: app.metricsUrl })
    if (app.url !== null) {
      const text = await prepareWelcome(app, config.publicUrl ?? app.url).catch(tolerateOutage)
      if (text) printText(logger, text)
    }
    if (pages?.warning) printText(logger, `WARNING: ${pages.warning}\n\n`)
  }
  await runUntilStopped(logger, { stopSignals, stopMsMax: STOP_MS_MAX, start, announce })
}

/** Serves the API as one of several processes, which the supervisor has started. */
async function serveSupervised(
  config: Config,
  { link, stopSignals }: { link: SupervisorLink; stopSignals: StopSignals },
): Promise<void> {
  const { number, port, pagesFolder } = link.start
  const logger = createLogger(config.logLevel).child({ process: number })
  link.logTo(logger)
  const start = async (signal: AbortSignal) =>
    await startApp({
      config: { ...config, port, metricsPort: null },
      logger,
      role: 'api',
      isSupervised: true,
      pagesFolder,
      serverWaitMsMax: SERVER_WAIT_MS_MAX,
      signal,
    })
  const announce = async ({ url, readMetrics }: App) => {
    logger.info({ event: 'process.started', url })
    await link.announce({ url: url ?? '', readMetrics })
  }
  const options = { stopSignals, stopMsMax: API_PROCESS_STOP_MS_MAX, start, announce }
  try {
    await runUntilStopped(logger, options)
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    await link.reportFailure(error.message)
    process.exitCode = 1
  }
}

type RunOptions<T> = {
  stopSignals: StopSignals
  stopMsMax: number
  /** If the signal aborts, it leaves nothing running and rejects. */
  start: (signal: AbortSignal) => Promise<T>
  announce: (app: T) => Promise<void>
}

async function runUntilStopped<T extends Service>(
  logger: Logger,
  { stopSignals, stopMsMax, start, announce }: RunOptions<T>,
): Promise<void> {
  using faults = new ProcessFaults({ logger, writerFolder: INTAKE, exit: () => endProcess(1) })
  let running: T | null = null
  const onLate = () => endLate(logger, { app: running, stopMsMax })
  const signal = listenForStop(stopSignals, logger, { stopMsMax, onLate })
  const started = await start(signal).catch((error: unknown) => {
    if (!signal.aborted) throw error
    return null
  })
  if (started === null) return
  await using app = started
  running = app
  faults.markStarted(app.metrics)
  await announce(app)
  if (!signal.aborted) await once(signal, 'abort')
}

/**
 * Kills the process if shutdown hangs. Everything it interrupts is safe to kill at any time, so the exit
 * code is 1 only if a caller is still waiting for the outcome of an event.
 */
function endLate(
  logger: Logger,
  { app, stopMsMax }: { app: Service | null; stopMsMax: number },
): void {
  const isWriting = app?.isWriting() === true
  logger.fatal({ event: 'service.killed', afterMs: stopMsMax, isWriting })
  endProcess(isWriting ? 1 : 0)
}

/** A database outage at startup doesn't stop the service. Readiness reports it. */
function tolerateOutage(error: unknown): null {
  if (!isOutage(error)) throw error
  return null
}

/** Returns a signal that aborts when the service must stop. `onLate` is called if stopping takes too long. */
function listenForStop(
  stopSignals: StopSignals,
  logger: Logger,
  { stopMsMax, onLate }: { stopMsMax: number; onLate: () => void },
): AbortSignal {
  const stop = new AbortController()
  stopSignals.onStop((signal) => {
    // Unref'd, so that the timer doesn't keep an otherwise finished process alive.
    setTimeout(onLate, stopMsMax).unref()
    logger.info({ event: 'service.stopping', signal })
    stop.abort(new Error(`stopped by ${signal}`))
  })
  return stop.signal
}

/** Creates a demo company in an empty embedded database, and prints how to use it. */
async function prepareWelcome(app: Service, url: string): Promise<string> {
  if (!app.dataSource.isEmbedded || (await hasCompanies(app.database.db))) {
    return `\nAnnals is running at ${url}  (API reference: ${url}/docs)\n\n`
  }
  const demo = await createCompany(app.database.db, {
    company: 'Demo',
    plan: 'PRO',
    workspaces: ['Production'],
    project: 'Billing',
    email: 'demo@example.com',
    password: null,
    allowlist: DEFAULT_ALLOWLIST,
  })
  return `
Annals is running at ${url}  (API reference: ${url}/docs)

A demo company has been created. The login and the keys are shown only once.

  Dashboard      ${url}/
  Login          ${demo.user.email}  /  ${demo.user.password}
  Workspace key  ${demo.workspaceKey}
  Company key    ${demo.companyKey}

Try it:

  curl -s ${url}/v1/events -H 'authorization: Bearer ${demo.workspaceKey}' -H 'content-type: application/json' -d '{"category":"auth","action":"user.login","actor":{"id":"u-17"}}'
  curl -s ${url}/v1/events -H 'authorization: Bearer ${demo.workspaceKey}'

`
}
