import type { Config } from './config.ts'
import type { ServeRole } from './serve-role.ts'
import { startDispatcher, startWorkers } from './background-work.ts'
import { archiveUrlOf } from './archive-url-of.ts'
import { openDataSource, type DataSource } from './data-source.ts'
import { openArchive } from './open-archive.ts'
import { KeyUseRecorder } from './edge/auth/key-use-recorder.ts'
import { SharedRates } from './edge/auth/rate/shared-rates.ts'
import type { KeyGuard } from './edge/auth/require-key.ts'
import { LoginGuard } from './edge/auth/login/login-guard.ts'
import { DOWNLOAD_BYTES_MAX } from './edge/dashboard/exports/download-guard.ts'
import { startDownloadRefusals } from './edge/export/download-refusals.ts'
import type { HttpTimeouts } from './edge/http/http-server.ts'
import { OpenConnections } from './edge/http/open-connections.ts'
import { OutputBudget } from './edge/http/output-budget.ts'
import { createServiceAudit } from './intake/audit-entry.ts'
import { DailyBytes } from './intake/daily-bytes.ts'
import { Writer, type WriterListeners } from './intake/writer.ts'
import type { MergeMetrics } from './edge/serve-metrics.ts'
import { listenForRequests, listenForScrapes } from './listen.ts'
import { refuseOccupiedPorts } from './listen-ports.ts'
import type { ChainReads } from './ledger/replica/chain-reads.ts'
import type { ReplicaReads } from './ledger/replica/replica-reads.ts'
import { openReplica } from './open-replica.ts'
import { readArchiveId } from './outlet/archive/archive-identity-store.ts'
import { warnNoArchive } from './outlet/archive/warn-no-archive.ts'
import { warnUnreachable } from './outlet/archive/warn-unreachable.ts'
import { LiveTail } from './outlet/explorer/live-tail/live-tail.ts'
import { Searches } from './outlet/explorer/searches.ts'
import { DOWNLOAD_LIMITS, type DownloadLimits } from './edge/export/download-slots.ts'
import { EXPORT_TIMEOUTS, type ExportTimeouts } from './outlet/export/export-timeouts.ts'
import { FeedWaiters } from './outlet/feed/feed-waiters.ts'
import { TreeSigner } from './outlet/proof/signer.ts'
import { SigningWatch } from './outlet/proof/signing-watch.ts'
import type { WorkspaceId } from './platform/id.ts'
import { checkSecretKey } from './outlet/webhook/secret/check-secret-key.ts'
import { webhookSecretBox } from './outlet/webhook/secret/webhook-secret.ts'
import { DiskSpace } from './platform/engine/disk-space.ts'
import { droppedLines, type Logger } from './platform/logger.ts'
import { Mailer } from './platform/mailer.ts'
import { createMetrics, type Metrics } from './platform/metrics.ts'
import { NODE_TIMES, NodePresence } from './platform/node/node-presence.ts'
import type { ObjectStore } from './platform/object-store/object-store.ts'
import type { TelemetryExport } from './platform/otlp/telemetry-export.ts'
import type { Tracer } from './platform/otlp/tracer.ts'
import { connectionLimit, readOpenFilesMax } from './platform/open-files.ts'
import { Database } from './platform/pg/database.ts'
import type { Connection } from './platform/pg/servers.ts'
import type { Secret } from './platform/secret/secret.ts'
import {
  type Clock,
  type MonotonicClock,
  monotonicClock,
  systemClock,
} from './platform/time/clock.ts'
import { untilAborted } from './platform/time/deadline.ts'
import { SharedClock } from './platform/time/shared-clock.ts'
import { serverDeps } from './server-deps.ts'
import { createGaugeRefresh, openTelemetryExport } from './telemetry.ts'
import type { ServiceAudit } from './tenancy/caller.ts'
import { findKeyByKid } from './tenancy/key/key-store.ts'

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
  /** What `/metrics` serves, without `mergeMetrics`. */
  readMetrics: () => Promise<string>
  /** Exchanges the use of rate limits with other nodes now, instead of within a second. */
  exchangeRates: () => Promise<void>
}

type AppOptions = {
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
  downloadLimits?: DownloadLimits
  output?: OutputBudget
  /** Multiplies the timeouts of databases and of the writer. Tests set it, because a busy machine is slow. */
  timeoutFactor?: number
  /** How long startup waits for a configured PostgreSQL that is starting. By default, that is an error. */
  serverWaitMsMax?: number
  /** For an API process: its supervisor has checked the ports and owns the data folder. */
  isSupervised?: boolean
  /** Adds the metrics of other processes to those of this one. */
  mergeMetrics?: MergeMetrics
  /** Aborts startup, and the promise rejects. Has no effect once the app has started. */
  signal?: AbortSignal
}

const CONNECTIONS_MAX = 20
/** For keys, sessions and readiness checks, which must not wait when requests exhaust the main pool. */
const ACCESS_CONNECTIONS_MAX = 6
/**
 * Shorter than the callers' timeout. Otherwise, while a table is locked, each caller that times out would
 * close its connection, and the server would leave that connection's statement waiting for the lock.
 */
const ACCESS_STATEMENT_MS_MAX = 650
/** On shutdown, background work gets this long to finish. After that, its statements are canceled. */
const BACKGROUND_MS_MAX = 3_500

/** What every step of the start gets. */
type Base = {
  config: Config
  logger: Logger
  role: ServeRole
  clock: Clock
  monotonic: MonotonicClock
  timeoutFactor: number
  isSupervised: boolean
  mergeMetrics: MergeMetrics | undefined
  /** Aborts startup. */
  signal: AbortSignal | null
  /** Cancels the statements of background work that shutdown no longer waits for. */
  cutSignal: AbortSignal
  audit: ServiceAudit
  /** Null without an OpenTelemetry endpoint. */
  tracer: Tracer | null
}

/**
 * Starts the whole service. Every part is pushed on one disposable stack as it starts, so shutdown runs
 * in reverse: stop accepting, finish or abort requests, drain the writer, stop the loops, close the
 * pool, leave the engine. A worker node has no API port and no writer.
 */
export async function startApp(options: AppOptions): Promise<App> {
  const { config, logger, role = 'all', clock = systemClock, monotonic = monotonicClock } = options
  const { signal = null, timeoutFactor = 1, exportTimeouts = EXPORT_TIMEOUTS } = options
  const { output = new OutputBudget(), isSupervised = false, mergeMetrics } = options
  await using stack = new AsyncDisposableStack()
  if (!isSupervised) await refuseOccupiedPorts(config, role)
  const cut = new AbortController()
  const audit = createServiceAudit(clock)
  const times = { clock, monotonic, timeoutFactor, isSupervised, mergeMetrics }
  const telemetry = await openTelemetryExport(stack, { config, clock, logger })
  const traced = { audit, tracer: telemetry?.tracer ?? null }
  const base = { config, logger, role, ...times, signal, cutSignal: cut.signal, ...traced }
  const storage = await openStorage(stack, base, options.serverWaitMsMax)
  const { dataSource, secretKey, database, archive } = storage
  const connections = limitConnections(logger)
  const followerOptions = { db: database.db, logger, connectionsMax: connections.connectionsMax }
  const { liveTail, feedWaiters } = openFollowers(stack, followerOptions)
  const metrics = openMetrics({ ...storage, logger, telemetry, connections, output, feedWaiters })
  const signer = openSigner({ ...base, ...storage, metrics })
  const verifier = startWorkers(stack, { ...base, ...storage, exportTimeouts, signer, metrics })
  const keyUse = stack.use(new KeyUseRecorder({ db: database.dbFast, clock, monotonic, logger }))
  const signIn = openLoginGuard(stack, { ...base, ...storage })
  const refusals = stack.use(startDownloadRefusals({ db: database.db, monotonic, logger }))
  const destinationRules = { mode: config.webhookDestinations, ports: config.webhookPorts }
  const sending = { destinationRules, box: webhookSecretBox(secretKey) }
  const presence = await startPresence(stack, { ...base, ...storage })
  const dispatcher = startDispatcher(stack, { ...base, ...storage, ...sending, metrics, presence })
  // Runs after the writer is disposed and before everything else that uses the database.
  stack.defer(() => void setTimeout(() => cut.abort(), BACKGROUND_MS_MAX).unref())
  const watch = watchSigning(stack, { ...base, ...storage, signer, metrics })
  const listeners = listenersOf([dispatcher, liveTail, feedWaiters], watch)
  const writer = await startWriter(stack, { ...base, ...storage, metrics, listeners })
  const parts = { config, logger, clock, monotonic, metrics, connections, output, signer, refusals }
  const deps =
    writer &&
    serverDeps({
      ...parts,
      ...traced,
      ...storage,
      ...signIn,
      keyUse,
      ...sending,
      writer,
      liveTail,
      feedWaiters,
      searches: new Searches(storage.reads),
      wakeDispatcher: () => dispatcher?.wake(),
      wakeVerifier: () => verifier?.wake(),
      pagesFolder: options.pagesFolder ?? null,
      downloadBytesMax: options.downloadBytesMax ?? DOWNLOAD_BYTES_MAX,
      exportTimeouts,
      downloadLimits: options.downloadLimits ?? DOWNLOAD_LIMITS,
    })
  const exchangeRates = shareRates(stack, deps, { ...base, ...storage, presence })
  const url = deps && (await listenForRequests(stack, config, deps, options.timeouts))
  const measured = { ...base, ...storage, metrics, writer, deps }
  const reports = await reportMetrics(stack, telemetry, measured)
  const kept = stack.move()
  return {
    url,
    ...reports,
    metrics,
    database,
    dataSource,
    archive,
    isWriting: () => writer?.isBusy === true,
    exchangeRates,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}

function listenersOf(
  consumers: readonly ({ wakeFor: (workspaceIds: ReadonlySet<WorkspaceId>) => void } | null)[],
  watch: SigningWatch | null,
): WriterListeners {
  return {
    onCommit: (workspaceIds) => {
      for (const consumer of consumers) consumer?.wakeFor(workspaceIds)
    },
    onMoved: (move) => watch?.noteMoved(move),
  }
}

/** Other nodes know this one before it serves requests. */
async function startPresence(
  stack: AsyncDisposableStack,
  { accessDatabase, role, monotonic, logger, timeoutFactor, signal }: Base & Storage,
): Promise<NodePresence> {
  // Its connections never wait for searches or exports: a late renewal would look like a dead node.
  const db = accessDatabase.dbFast
  const deadMs = NODE_TIMES.deadMs * timeoutFactor
  const times = { ...NODE_TIMES, deadMs, forgetMs: NODE_TIMES.forgetMs * timeoutFactor }
  const presence = stack.use(new NodePresence({ db, role, monotonic, logger, times }))
  await untilAborted(presence.renewNow(), signal)
  return presence
}

/** Shares the rate limits with other nodes. Returns a function that does it now. */
function shareRates(
  stack: AsyncDisposableStack,
  deps: { keyGuard: KeyGuard } | null,
  {
    config,
    database: { dbFast: db },
    sharedClock: clock,
    logger,
    presence,
  }: Base & Storage & { presence: NodePresence },
): () => Promise<void> {
  if (!deps || config.rateLimits === 'off') return async () => {}
  const { buckets } = deps.keyGuard
  const countNodes = () => presence.servingCount
  const rates = stack.use(new SharedRates({ db, buckets, countNodes, clock, logger }))
  return async () => {
    await presence.renewNow()
    await rates.exchangeNow()
  }
}

function openMetrics({
  database,
  logger,
  telemetry,
  connections,
  output,
  feedWaiters,
  replicaReads,
}: { database: Database; logger: Logger; telemetry: TelemetryExport | null } & Pick<
  Required<Parameters<typeof createMetrics>[0] & object>,
  'connections' | 'output' | 'feedWaiters' | 'replicaReads'
>): Metrics {
  return createMetrics({
    countWaiting: () => database.pool.waitingCount,
    countDroppedLines: () => droppedLines(logger),
    countDroppedSpans: () => telemetry?.droppedSpanCount ?? 0,
    connections,
    output,
    feedWaiters,
    replicaReads,
  })
}

type Storage = {
  dataSource: DataSource
  connection: Connection
  secretKey: Secret<Buffer>
  database: Database
  accessDatabase: Database
  reads: ChainReads
  /** Null without a replica. */
  replica: Database | null
  replicaReads: ReplicaReads | null
  /** The time of the database server, which all nodes share. */
  sharedClock: Clock
  archive: ObjectStore
  hasArchive: boolean
}

/** Opens the database and the archive, and checks that this node can use them. */
async function openStorage(
  stack: AsyncDisposableStack,
  base: Base,
  serverWaitMsMax = 0,
): Promise<Storage> {
  const { config, logger, clock, timeoutFactor, isSupervised, signal, cutSignal } = base
  const dataSource = stack.use(
    await openDataSource(config, {
      logger,
      exclusive: !isSupervised,
      mayCreate: !isSupervised,
      serverWaitMsMax,
      signal: signal ?? undefined,
    }),
  )
  const { connection } = dataSource
  const database = stack.use(
    new Database({
      connection,
      role: 'annals_serving',
      connectionsMax: CONNECTIONS_MAX,
      logger,
      timeoutFactor,
      cutSignal,
    }),
  )
  const accessDatabase = stack.use(
    new Database({
      connection,
      role: 'annals_serving',
      connectionsMax: ACCESS_CONNECTIONS_MAX,
      statementMsMax: ACCESS_STATEMENT_MS_MAX * timeoutFactor,
      timeoutFactor,
      // The statement that every request with a key runs. No kid is empty, so it finds nothing.
      check: (db) => findKeyByKid(db, ''),
      logger,
    }),
  )
  const { db } = database
  const { secretKey } = dataSource
  await untilAborted(checkSecretKey({ db, secretKey, clock }), signal)
  const shared = stack.use(new SharedClock({ db, clock, logger }))
  await untilAborted(shared.measureNow(), signal)
  const archive = stack.use(openArchive(config, { readArchiveId: () => readArchiveId(db) }))
  const hasArchive = archiveUrlOf(config) !== null
  if (hasArchive) stack.use(warnUnreachable({ database, archive, clock, logger }))
  else await untilAborted(warnNoArchive({ db, logger }), signal)
  const replica = openReplica(stack, { ...base, database })
  const databases = { dataSource, connection, database, accessDatabase, ...replica }
  return { ...databases, secretKey, sharedClock: shared.now, archive, hasArchive }
}

/** Null without an archive: the signer keeps what it signed there, where the database's owner can't change it. */
function openSigner({
  config,
  secretKey,
  database,
  archive,
  hasArchive,
  sharedClock,
  monotonic,
  logger,
  metrics,
}: Base & Storage & { metrics: Metrics }): TreeSigner | null {
  if (!hasArchive) return null
  return new TreeSigner({
    database,
    archive,
    keySource: {
      secretKey,
      configured: config.signingKey ?? config.signingKeyFile,
      previous: config.signingKeyPrevious,
    },
    originHost: config.publicUrl === null ? 'annals.local' : new URL(config.publicUrl).hostname,
    clock: sharedClock,
    monotonic,
    logger,
    onSigned: (ageSeconds) => metrics.checkpointAge.observe(ageSeconds),
  })
}

/** What serves the requests that follow chains. */
function openFollowers(
  stack: AsyncDisposableStack,
  options: ConstructorParameters<typeof FeedWaiters>[0],
) {
  const liveTail = stack.use(new LiveTail(options))
  return { liveTail, feedWaiters: stack.use(new FeedWaiters(options)) }
}

function limitConnections(logger: Logger): OpenConnections {
  const openFilesMax = readOpenFilesMax()
  const { connectionsMax, isReserveMet } = connectionLimit(openFilesMax)
  if (!isReserveMet) logger.warn({ event: 'open-files.limited', openFilesMax, connectionsMax })
  return new OpenConnections({ port: 'api', connectionsMax, logger })
}

function openLoginGuard(
  stack: AsyncDisposableStack,
  { config, database, clock, monotonic, logger, cutSignal }: Base & Storage,
): { mailer: Mailer; login: LoginGuard } {
  const mailer = stack.use(new Mailer({ smtpUrl: config.smtpUrl, logger, cutSignal }))
  const hasRateLimits = config.rateLimits === 'on'
  const parts = { db: database.db, clock, monotonic, logger, mailer, hasRateLimits }
  return { mailer, login: stack.use(new LoginGuard(parts)) }
}

/** Sends the metrics to the OpenTelemetry receiver and serves them. The URL is null if no port is set. */
async function reportMetrics(
  stack: AsyncDisposableStack,
  telemetry: TelemetryExport | null,
  parts: Base & Parameters<typeof createGaugeRefresh>[0],
): Promise<Pick<App, 'metricsUrl' | 'readMetrics'>> {
  const { config, metrics, monotonic, logger, mergeMetrics } = parts
  const refresh = createGaugeRefresh(parts)
  telemetry?.startMetrics(metrics, refresh)
  const readMetrics = async () => {
    await refresh()
    return await metrics.registry.metrics()
  }
  const scrapes = { metrics, monotonic, logger, refresh, mergeMetrics }
  return { metricsUrl: await listenForScrapes(stack, config, scrapes), readMetrics }
}

/** Only nodes that write know which events there are without asking the database. */
function watchSigning(
  stack: AsyncDisposableStack,
  {
    role,
    database,
    signer,
    metrics,
    ...parts
  }: Base & Storage & { signer: TreeSigner | null; metrics: Metrics },
): SigningWatch | null {
  if (signer === null || role === 'worker') return null
  const { logger, monotonic } = parts
  const onChecked = (seconds: number) => metrics.unsignedAge.set(seconds)
  return stack.use(new SigningWatch({ db: database.db, signer, logger, monotonic, onChecked }))
}

type WriterParts = Base & Storage & { metrics: Metrics; listeners: WriterListeners }

/** Starts the writer and waits until it knows whether it can write. A worker node has no writer. */
async function startWriter(
  stack: AsyncDisposableStack,
  { role, signal, accessDatabase, ...parts }: WriterParts,
): Promise<Writer | null> {
  if (role === 'worker') return null
  const { config, dataSource, logger, metrics, monotonic } = parts
  const onChecked = (freeBytes: number) => metrics.diskFreeBytes.set({ disk: 'data' }, freeBytes)
  const diskSpace = dataSource.isEmbedded
    ? stack.use(new DiskSpace({ folder: config.dataDir, logger, onChecked }))
    : null
  const dailyBytes = config.rateLimits === 'on' ? new DailyBytes(monotonic) : null
  const writer = stack.use(new Writer({ ...parts, diskSpace, dailyBytes }))
  await untilAborted(writer.startProbing(), signal)
  // Opens a connection, so that the first requests don't wait for one.
  await untilAborted(accessDatabase.isReachable(), signal)
  return writer
}
