import { once } from 'node:events'
import { type App, startApp } from '../app.ts'
import type { Config } from '../config.ts'
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
import { createCompany } from '../tenancy/create-company.ts'

/** Requests get 5 s, background work 3.5 s. Orchestrators kill the process after 10 s or more. */
const STOP_MS_MAX = 9_500
const INTAKE = new URL('../intake/', import.meta.url).href

/** `annals serve`: runs until it receives a stop signal, then shuts down cleanly. */
export async function serve(
  config: Config,
  { role, stopSignals }: { role: ServeRole; stopSignals: StopSignals },
): Promise<void> {
  const logger = createLogger(config.logLevel)
  using faults = new ProcessFaults({ logger, writerFolder: INTAKE, exit: () => endProcess(1) })
  using _heapLimit = limitHeapGrowth()
  let running: App | null = null
  const signal = listenForStop(stopSignals, logger, () => endLate(logger, running))
  const started = await startUnlessStopped(config, { logger, role, signal })
  if (started === null) return
  const { pages } = started
  await using app = started.app
  running = app
  faults.markStarted(app.metrics)
  logger.info({ event: 'service.started', role, url: app.url, metricsUrl: app.metricsUrl })
  if (app.url !== null) {
    const text = await prepareWelcome(app, config.publicUrl ?? app.url).catch(tolerateOutage)
    if (text) printText(logger, text)
  }
  if (pages?.warning) printText(logger, `WARNING: ${pages.warning}\n\n`)
  if (!signal.aborted) await once(signal, 'abort')
}

/** Returns null if a stop signal aborts startup. Nothing is left running then. */
async function startUnlessStopped(
  config: Config,
  { logger, role, signal }: { logger: Logger; role: ServeRole; signal: AbortSignal },
): Promise<{ app: App; pages: Pages | null } | null> {
  try {
    const pages = role === 'worker' ? null : await ensurePages(logger, undefined, signal)
    const pagesFolder = pages?.folder ?? null
    const options = { config, logger, role, pagesFolder, signal }
    return { pages, app: await startApp({ ...options, serverWaitMsMax: SERVER_WAIT_MS_MAX }) }
  } catch (error) {
    if (!signal.aborted) throw error
    return null
  }
}

/**
 * Kills the process if shutdown hangs. Everything it interrupts is safe to kill at any time, so the exit
 * code is 1 only if a caller is still waiting for the outcome of an event.
 */
function endLate(logger: Logger, app: App | null): void {
  const isWriting = app?.isWriting() === true
  logger.fatal({ event: 'service.killed', afterMs: STOP_MS_MAX, isWriting })
  endProcess(isWriting ? 1 : 0)
}

/** A database outage at startup doesn't stop the service. Readiness reports it. */
function tolerateOutage(error: unknown): null {
  if (!isOutage(error)) throw error
  return null
}

/** Returns a signal that aborts when the service must stop. `onLate` is called if stopping takes too long. */
function listenForStop(stopSignals: StopSignals, logger: Logger, onLate: () => void): AbortSignal {
  const stop = new AbortController()
  stopSignals.onStop((signal) => {
    // Unref'd, so that the timer doesn't keep an otherwise finished process alive.
    setTimeout(onLate, STOP_MS_MAX).unref()
    logger.info({ event: 'service.stopping', signal })
    stop.abort(new Error(`stopped by ${signal}`))
  })
  return stop.signal
}

/** Creates a demo company in an empty embedded database, and prints how to use it. */
async function prepareWelcome(app: App, url: string): Promise<string> {
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
