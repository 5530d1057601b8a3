import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Config, ServeRole } from './config.ts'
import { createKeyAccess } from './edge/auth/key-access.ts'
import { KeyCache } from './edge/auth/key-cache.ts'
import { KeyUseRecorder } from './edge/auth/key-use-recorder.ts'
import { ClientAddresses } from './edge/auth/client-address.ts'
import { KeyGuard } from './edge/auth/require-key.ts'
import { SessionGuard } from './edge/auth/require-session.ts'
import { createSessionAccess } from './edge/auth/session-access.ts'
import { DOWNLOAD_BYTES_MAX } from './edge/dashboard/exports/download-guard.ts'
import { LoginGuard } from './edge/auth/login/login-guard.ts'
import { ResponseDelays } from './edge/http/delay-responses.ts'
import { DownloadManager } from './edge/export/download-manager.ts'
import { MetricsListener } from './edge/metrics-listener.ts'
import type { HttpTimeouts } from './edge/http/http-server.ts'
import { OpenConnections } from './edge/http/open-connections.ts'
import { OutputBudget } from './edge/http/output-budget.ts'
import { RequestSlots } from './edge/http/request-slots.ts'
import { buildServer, type ServerDeps } from './edge/server.ts'
import { stopServer } from './edge/http/stop-server.ts'
import { OperatorError } from './errors.ts'
import { Writer } from './intake/writer.ts'
import { startPartitionWorker } from './ledger/hot/partition-worker.ts'
import { readArchiveId } from './outlet/archive/archive-identity-store.ts'
import { startArchiveWorker } from './outlet/archive/archive-worker.ts'
import { warnNoArchive } from './outlet/archive/warn-no-archive.ts'
import { warnUnreachable } from './outlet/archive/warn-unreachable.ts'
import { LiveTail } from './outlet/explorer/live-tail.ts'
import { Searches } from './outlet/explorer/searches.ts'
import { startRollupWorker } from './outlet/explorer/rollup-worker.ts'
import { startExpireWorker } from './outlet/export/expire-worker.ts'
import { EXPORT_TIMEOUTS, type ExportTimeouts } from './outlet/export/export-timeouts.ts'
import { checkSecretKey } from './outlet/webhook/check-secret-key.ts'
import type { DestinationRules } from './outlet/webhook/destination.ts'
import { createConnector } from './outlet/webhook/connector.ts'
import { Dispatcher, type DispatcherOptions } from './outlet/webhook/dispatcher.ts'
import { NameResolver } from './outlet/webhook/name-resolver.ts'
import { readRetryAfter } from './outlet/webhook/retry-schedule.ts'
import { Sender } from './outlet/webhook/sender.ts'
import { startSweepWorker } from './outlet/webhook/sweep-worker.ts'
import { webhookSecretBox } from './outlet/webhook/webhook-secret.ts'
import { startVerifyWorker } from './outlet/verify/verify-run-worker.ts'
import {
  type Clock,
  type MonotonicClock,
  monotonicClock,
  systemClock,
} from './platform/time/clock.ts'
import { CursorCodec } from './platform/cursor.ts'
import { untilAborted } from './platform/time/deadline.ts'
import { randomFraction } from './platform/id.ts'
import { droppedLines, type Logger } from './platform/logger.ts'
import { Mailer } from './platform/mailer.ts'
import { createMetrics, type Metrics } from './platform/metrics.ts'
import type { ObjectStore } from './platform/object-store/object-store.ts'
import { connectionLimit, readOpenFilesMax } from './platform/open-files.ts'
import { Database } from './platform/pg/database.ts'
import type { Secret } from './platform/secret/secret.ts'
import { SharedClock } from './platform/time/shared-clock.ts'
import { requestShare } from './platform/scheduling/time-slice.ts'
import { archiveUrlOf, openArchive, openDataSource, type DataSource } from './data-source.ts'
import { compileRanges } from './tenancy/allowlist.ts'
import { findKeyByKid } from './tenancy/key-store.ts'
import { ProjectCache } from './tenancy/project-cache.ts'
import { startSignInSweepWorker } from './tenancy/sign-in-sweep-worker.ts'
import { listProjectIds } from './tenancy/workspace-store.ts'

export type App = AsyncDisposable & {
  /** Null on a worker node, which serves no requests. */
  url: string | null
  metricsUrl: string | null
  metrics: Metrics
  database: Database
  dataSource: DataSource
  archive: ObjectStore
  /** True while a caller waits for the outcome of an event. */
  isWriting: () => boolean
}

const CONNECTIONS_MAX = 20
/** For keys, sessions and readiness checks, which must not wait when requests exhaust the main pool. */
const ACCESS_CONNECTIONS_MAX = 6
/**
 * Shorter than the callers' timeout. Otherwise, while a table is locked, each caller that times out would
 * close its connection, and the server would leave that connection's statement waiting for the lock.
 */
const ACCESS_STATEMENT_MS_MAX = 650
/**
 * For reads of a row or two: the status of a key, and the projects of a workspace when an event names
 * an unknown one. They have separate slots, so that a company with slow queries can still send events.
 */
const SMALL_READS = { permitsMax: 4, permitsPerCompanyMax: 2 }
/** On shutdown, background work gets this long to finish. After that, its statements are canceled. */
const BACKGROUND_MS_MAX = 3_500

/**
 * Starts the whole service. Every part is pushed on one disposable stack as it starts, so shutdown runs
 * in reverse: stop accepting, finish or abort requests, drain the writer, stop the loops, close the
 * pool, leave the engine. A worker node has no API port and no writer.
 */
export async function startApp({
  config,
  logger,
  role = 'all',
  clock = systemClock,
  monotonic = monotonicClock,
  timeouts,
  pagesFolder = null,
  downloadBytesMax = DOWNLOAD_BYTES_MAX,
  exportTimeouts = EXPORT_TIMEOUTS,
  output = new OutputBudget(),
  signal,
}: {
  config: Config
  logger: Logger
  role?: ServeRole
  clock?: Clock
  monotonic?: MonotonicClock
  timeouts?: Partial<HttpTimeouts>
  pagesFolder?: string | null
  /** Limit for downloads in the dashboard. */
  downloadBytesMax?: number
  exportTimeouts?: ExportTimeouts
  output?: OutputBudget
  /** Aborts startup, and the promise rejects. Has no effect once the app has started. */
  signal?: AbortSignal
}): Promise<App> {
  await using stack = new AsyncDisposableStack()
  if (role !== 'worker') await refuseOccupiedPort('ANNALS_PORT', config.host, config.port)
  await refuseOccupiedPort('ANNALS_METRICS_PORT', config.host, config.metricsPort ?? 0)
  const dataSource = stack.use(
    await openDataSource(config, { logger, exclusive: true, mayCreate: true, signal }),
  )
  const cut = new AbortController()
  const database = stack.use(
    new Database({
      connection: dataSource.connection,
      role: 'annals_serving',
      connectionsMax: CONNECTIONS_MAX,
      logger,
      cutSignal: cut.signal,
    }),
  )
  const accessDatabase = stack.use(
    new Database({
      connection: dataSource.connection,
      role: 'annals_serving',
      connectionsMax: ACCESS_CONNECTIONS_MAX,
      statementMsMax: ACCESS_STATEMENT_MS_MAX,
      // The statement that every request with a key runs. No kid is empty, so it finds nothing.
      check: (db) => findKeyByKid(db, ''),
      logger,
    }),
  )
  const connections = limitConnections(logger)
  const metrics = createMetrics({
    countWaiting: () => database.pool.waitingCount,
    countDroppedLines: () => droppedLines(logger),
    connections,
    output,
  })
  const { connection, secretKey } = dataSource
  await untilAborted(checkSecretKey({ db: database.db, secretKey, clock }), signal ?? null)
  const shared = stack.use(new SharedClock({ db: database.db, clock, logger }))
  await untilAborted(shared.measureNow(), signal ?? null)
  const ownConnections = { connection, clock, logger, cutSignal: cut.signal }
  const archive = stack.use(
    openArchive(config, { readArchiveId: () => readArchiveId(database.db) }),
  )
  const hasArchive = archiveUrlOf(config) !== null
  if (hasArchive) stack.use(warnUnreachable({ database, archive, clock, logger }))
  else await untilAborted(warnNoArchive({ db: database.db, logger }), signal ?? null)
  stack.use(startPartitionWorker(ownConnections))
  if (role !== 'api') {
    if (hasArchive) stack.use(startArchiveWorker({ ...ownConnections, archive }))
    stack.use(startExpireWorker({ db: database.db, clock, logger }))
    stack.use(startSignInSweepWorker({ db: database.db, clock, logger }))
    stack.use(startRollupWorker({ db: database.db, clock, logger }))
  }
  const verifier =
    role === 'api'
      ? null
      : stack.use(startVerifyWorker({ db: database.db, archive, clock: shared.now, logger }))
  const keyUse = stack.use(new KeyUseRecorder({ db: database.dbFast, clock, monotonic, logger }))
  const { mailer, login } = openLoginGuard(stack, {
    config,
    database,
    clock,
    monotonic,
    logger,
    cutSignal: cut.signal,
  })
  const box = webhookSecretBox(secretKey)
  const rules = { mode: config.webhookDestinations, ports: config.webhookPorts }
  const dispatcher =
    role === 'api'
      ? null
      : startDispatcher(stack, { database, rules, box, clock: shared.now, logger, metrics })
  const wakeDispatcher = () => dispatcher?.wake()
  const liveTail = stack.use(new LiveTail({ db: database.db, logger }))
  // Runs after the writer is disposed and before everything else that uses the database.
  stack.defer(() => void setTimeout(() => cut.abort(), BACKGROUND_MS_MAX).unref())
  const writer =
    role === 'worker'
      ? null
      : stack.use(
          new Writer({
            connection,
            clock,
            logger,
            metrics,
            onCommit: (workspaceIds) => {
              dispatcher?.wakeFor(workspaceIds)
              liveTail.wakeFor(workspaceIds)
            },
          }),
        )
  if (writer) await untilAborted(writer.startProbing(), signal ?? null)
  // Opens a connection, so that the first requests don't wait for one.
  if (writer) await untilAborted(accessDatabase.isReachable(), signal ?? null)
  const parts = { config, logger, clock, monotonic, database, metrics, keyUse, secretKey, archive }
  const url =
    writer &&
    (await listen(
      stack,
      config,
      serverDeps({
        ...parts,
        connections,
        output,
        accessDatabase,
        writer,
        liveTail,
        searches: new Searches(database.db),
        pagesFolder,
        mailer,
        login,
        box,
        destinationRules: rules,
        wakeDispatcher,
        wakeVerifier: () => verifier?.wake(),
        downloadBytesMax,
        exportTimeouts,
      }),
      timeouts,
    ))
  const metricsListener =
    config.metricsPort === null
      ? null
      : stack.use(
          await MetricsListener.listen(
            { metrics, logger },
            { host: config.host, port: config.metricsPort },
          ),
        )
  const kept = stack.move()
  return {
    url,
    metricsUrl: metricsListener && `http://${hostInUrl(config.host)}:${metricsListener.port}`,
    metrics,
    database,
    dataSource,
    archive,
    isWriting: () => writer?.isBusy === true,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

function limitConnections(logger: Logger): OpenConnections {
  const openFilesMax = readOpenFilesMax()
  const { connectionsMax, isReserveMet } = connectionLimit(openFilesMax)
  if (!isReserveMet) logger.warn({ event: 'open-files.limited', openFilesMax, connectionsMax })
  return new OpenConnections({ port: 'api', connectionsMax, logger })
}

function openLoginGuard(
  stack: AsyncDisposableStack,
  {
    config,
    database,
    clock,
    monotonic,
    logger,
    cutSignal,
  }: {
    config: Config
    database: Database
    clock: Clock
    monotonic: MonotonicClock
    logger: Logger
    cutSignal: AbortSignal
  },
): { mailer: Mailer; login: LoginGuard } {
  const mailer = stack.use(new Mailer({ smtpUrl: config.smtpUrl, logger, cutSignal }))
  const hasRateLimits = config.rateLimits === 'on'
  const parts = { db: database.db, clock, monotonic, logger, mailer, hasRateLimits }
  return { mailer, login: stack.use(new LoginGuard(parts)) }
}

function startDispatcher(
  stack: AsyncDisposableStack,
  {
    database,
    rules,
    ...deps
  }: Omit<DispatcherOptions, 'db' | 'sender' | 'random'> & {
    database: Database
    rules: DestinationRules
  },
): Dispatcher {
  const names = stack.use(new NameResolver({ mode: rules.mode }))
  const sender = stack.use(
    new Sender({
      connect: createConnector({ rules, resolve: (hostname) => names.resolve(hostname) }),
      readRetryAfter,
    }),
  )
  stack.use(startSweepWorker({ db: database.db, clock: deps.clock, logger: deps.logger }))
  return stack.use(new Dispatcher({ db: database.db, sender, random: randomFraction, ...deps }))
}

type Parts = Pick<
  ServerDeps,
  | 'logger'
  | 'clock'
  | 'monotonic'
  | 'metrics'
  | 'connections'
  | 'output'
  | 'keyUse'
  | 'writer'
  | 'pagesFolder'
  | 'mailer'
  | 'login'
  | 'box'
  | 'destinationRules'
  | 'wakeDispatcher'
  | 'wakeVerifier'
  | 'liveTail'
  | 'searches'
  | 'downloadBytesMax'
> & {
  config: Config
  database: Database
  /** For small queries about keys and sessions, and for readiness checks. */
  accessDatabase: Database
  secretKey: Secret<Buffer>
  archive: ObjectStore
  exportTimeouts: ExportTimeouts
}

/** Builds the dependencies of the routes. `annals openapi` uses it too, with a database it never queries. */
export function serverDeps({
  config,
  database,
  accessDatabase,
  logger,
  clock,
  monotonic,
  metrics,
  keyUse,
  writer,
  secretKey,
  archive,
  exportTimeouts,
  ...parts
}: Parts): ServerDeps {
  const { db, dbFast } = database
  const addresses = new ClientAddresses(compileRanges(config.trustedProxies))
  const hasRateLimits = config.rateLimits === 'on'
  const limits = { monotonic, addresses, hasRateLimits }
  const keyGuard = new KeyGuard({
    keyCache: new KeyCache((kid) => findKeyByKid(accessDatabase.dbFast, kid), monotonic),
    keyUse,
    clock,
    ...limits,
  })
  const slots = new RequestSlots({ share: requestShare })
  const exports = { database, archive, clock, logger, timeouts: exportTimeouts }
  const publicUrl = config.publicUrl?.replace(/\/+$/, '') ?? null
  const delays = new ResponseDelays({ addresses, hasRateLimits })
  const sessionGuard = new SessionGuard({
    db: accessDatabase.dbFast,
    clock,
    publicUrl,
    delays,
    ...limits,
  })
  const { signedIn, publicRoute, cookie } = sessionGuard
  const projectSlots = new RequestSlots(SMALL_READS)
  const projects = new ProjectCache({
    list: (workspaceId) => listProjectIds(dbFast, workspaceId),
    takeSlot: (companyId) => projectSlots.take(companyId, null),
    clock: monotonic,
  })
  return {
    ...parts,
    exports,
    slots,
    statusSlots: new RequestSlots(SMALL_READS),
    downloads: new DownloadManager(exports, slots),
    db,
    dbFast,
    writer,
    cursors: new CursorCodec(secretKey),
    listUnknownProjects: (place, ids) => projects.listUnknown(place, ids),
    clock,
    monotonic,
    logger,
    metrics,
    keyUse,
    delays,
    keyGuard,
    sessionGuard,
    requireKey: keyGuard.requireKey,
    keyAccess: createKeyAccess(accessDatabase.dbFast, logger),
    sessionAccess: createSessionAccess(accessDatabase.dbFast, clock, logger),
    signedIn,
    publicRoute,
    cookie,
    hasRateLimits,
    publicUrl,
    canReachDatabase: () => accessDatabase.isReachable(),
    canWrite: () => writer.canWrite,
    isDraining: () => false,
  }
}

async function listen(
  stack: AsyncDisposableStack,
  config: Config,
  deps: ServerDeps,
  timeouts: Partial<HttpTimeouts> | undefined,
): Promise<string> {
  let isDraining = false
  const server = await buildServer({ ...deps, isDraining: () => isDraining }, timeouts)
  stack.defer(async () => {
    isDraining = true
    await stopServer(server, deps.connections)
  })
  const address = await server.listen({ host: config.host, port: config.port })
  return `http://${hostInUrl(config.host)}:${new URL(address).port}`
}

/** Runs before the engine starts, so that a startup that can't succeed leaves the data folder untouched. */
async function refuseOccupiedPort(variable: string, host: string, port: number): Promise<void> {
  if (port === 0) return
  const probe = createServer()
  try {
    probe.listen({ host, port })
    await once(probe, 'listening')
    probe.close()
    await once(probe, 'close')
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? error.code : error
    const sentence =
      reason === 'EADDRINUSE'
        ? `Port ${port} on ${host} is already in use. Stop the program that uses it, or set ${variable}.`
        : `Can't listen on ${host}:${port} (${String(reason)}). Set ANNALS_HOST and ${variable}.`
    throw new OperatorError(sentence, { cause: error })
  }
}

function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}
