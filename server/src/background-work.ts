import { baseUrlOf } from './base-url.ts'
import type { Config } from './config.ts'
import type { ServeRole } from './serve-role.ts'
import { ColdCache } from './ledger/segment/cold-cache.ts'
import type { ChainReads } from './ledger/replica/chain-reads.ts'
import { startPartitionWorker } from './ledger/hot/partition-worker.ts'
import { startArchiveWorker } from './outlet/archive/archive-worker.ts'
import { startEventTypeWorker } from './outlet/event-type/event-type-worker.ts'
import { startRollupWorker } from './outlet/explorer/rollup-worker.ts'
import { startSearchBlockWorker } from './outlet/search/search-block-worker.ts'
import { startExpireWorker } from './outlet/export/job/expire-worker.ts'
import type { ExportTimeouts } from './outlet/export/export-timeouts.ts'
import { startScheduleWorker } from './outlet/export/schedule/schedule-worker.ts'
import { TreeCheck } from './outlet/proof/check-tree.ts'
import type { TreeSigner } from './outlet/proof/signer.ts'
import { LostCheck } from './outlet/proof/lost-check.ts'
import { startSignerWorker } from './outlet/proof/signer-worker.ts'
import { WitnessSender } from './outlet/proof/witness/witness-sender.ts'
import { startVerifyWorker } from './outlet/verify/verify-run-worker.ts'
import { startVerifyScheduleWorker } from './outlet/verify/verify-schedule-worker.ts'
import { createConnector } from './outlet/webhook/send/connector.ts'
import type { DestinationRules } from './outlet/webhook/send/destination.ts'
import { Dispatcher, type DispatcherOptions } from './outlet/webhook/dispatch/dispatcher.ts'
import { NameResolver } from './outlet/webhook/send/name-resolver.ts'
import { readRetryAfter } from './outlet/webhook/dispatch/retry-schedule.ts'
import { Sender } from './outlet/webhook/send/sender.ts'
import { startSweepWorker } from './outlet/webhook/delivery/sweep-worker.ts'
import { listFailingWebhooks } from './outlet/webhook/webhook-notice.ts'
import { randomFraction } from './platform/id.ts'
import type { Logger } from './platform/logger.ts'
import type { Metrics } from './platform/metrics.ts'
import type { WorkspaceId } from './platform/id.ts'
import type { NodePresence } from './platform/node/node-presence.ts'
import type { Tracer } from './platform/otlp/tracer.ts'
import type { ObjectStore } from './platform/object-store/object-store.ts'
import type { Database } from './platform/pg/database.ts'
import type { Connection } from './platform/pg/servers.ts'
import type { Clock } from './platform/time/clock.ts'
import { HOUR_MS } from './platform/time/time-units.ts'
import type { ServiceAudit } from './tenancy/caller.ts'
import { startNoticeMailWorker } from './tenancy/notice/notice-mail-worker.ts'
import { startNoticeWorker } from './tenancy/notice/notice-worker.ts'
import { startSignInSweepWorker } from './tenancy/sign-in/sign-in-sweep-worker.ts'

type WorkerParts = {
  config: Config
  role: ServeRole
  connection: Connection
  database: Database
  reads: ChainReads
  archive: ObjectStore
  hasArchive: boolean
  clock: Clock
  sharedClock: Clock
  logger: Logger
  cutSignal: AbortSignal
  audit: ServiceAudit
  exportTimeouts: ExportTimeouts
  /** Null without an archive, where the signer keeps what it signed. */
  signer: TreeSigner | null
  metrics: Metrics
  tracer: Tracer | null
}

/** Starts the periodic work. An API node only creates partitions. Requests can wake the returned worker. */
export function startWorkers(
  stack: AsyncDisposableStack,
  {
    config,
    role,
    connection,
    database,
    archive,
    hasArchive,
    clock,
    sharedClock,
    logger,
    cutSignal,
    audit,
    reads,
    exportTimeouts: timeouts,
    signer,
    metrics,
    tracer,
  }: WorkerParts,
): { wake: () => void } | null {
  const { db } = database
  const ownConnections = { connection, clock, logger, cutSignal }
  stack.use(startPartitionWorker(ownConnections))
  if (role === 'api') return null
  if (hasArchive) stack.use(startArchiveWorker({ ...ownConnections, archive, db, audit, metrics }))
  stack.use(startExpireWorker({ db, clock: sharedClock, logger, audit }))
  if (hasArchive) {
    const exports = {
      database,
      reads,
      archive,
      clock: sharedClock,
      logger,
      timeouts,
      audit,
      tracer,
    }
    stack.use(startScheduleWorker({ ...exports, cache: new ColdCache() }))
  }
  stack.use(startSignInSweepWorker({ db, clock: sharedClock, logger }))
  stack.use(startNoticeWorker({ db, clock: sharedClock, logger, listFailingWebhooks }))
  const { smtpUrl } = config
  if (smtpUrl !== null) {
    const baseUrl = baseUrlOf(config)
    const mailing = { db, clock: sharedClock, logger, smtpUrl, baseUrl, cutSignal }
    stack.use(startNoticeMailWorker(mailing))
  }
  stack.use(startRollupWorker({ db, clock, logger }))
  stack.use(startEventTypeWorker({ db, logger }))
  stack.use(startSearchBlockWorker({ db, logger }))
  if (signer) startSigning(stack, { config, database, archive, audit, signer, logger, metrics })
  return startVerifying(stack, { config, database, archive, sharedClock, logger, audit, signer })
}

function startVerifying(
  stack: AsyncDisposableStack,
  {
    config,
    database: { pool, db },
    archive,
    sharedClock: clock,
    logger,
    audit,
    signer,
  }: Pick<
    WorkerParts,
    'config' | 'database' | 'archive' | 'sharedClock' | 'logger' | 'audit' | 'signer'
  >,
): { wake: () => void } {
  const signed = signer && {
    listKeys: () => signer.listKeys(),
    openTree: (storage: ObjectStore, workspaceId: WorkspaceId) =>
      TreeCheck.open({ db, archive: storage, workspaceId, listKeys: () => signer.listKeys() }),
  }
  const worker = stack.use(startVerifyWorker({ pool, db, archive, clock, logger, audit, signed }))
  const intervalMs = config.verifyHours * HOUR_MS
  if (intervalMs > 0) {
    const onCreated = (): void => worker.wake()
    stack.use(startVerifyScheduleWorker({ db, clock, logger, intervalMs, onCreated }))
  }
  return worker
}

/** Signs checkpoints, and sends them to the witnesses. */
function startSigning(
  stack: AsyncDisposableStack,
  {
    config: { checkpointSeconds, witnesses },
    database: { db },
    archive,
    audit,
    signer,
    logger,
    metrics,
  }: Pick<WorkerParts, 'config' | 'database' | 'archive' | 'audit' | 'logger' | 'metrics'> & {
    signer: TreeSigner
  },
): void {
  const onLostCount = (count: number) => metrics.workspacesLost.set(count)
  const lostCheck = new LostCheck({ db, archive, logger, onLostCount })
  const worker = stack.use(
    startSignerWorker({
      db,
      signer,
      checkpointSeconds,
      logger,
      onKey: () => signer.announceKeys(audit),
      checkLost: (signal) => lostCheck.run(signal),
      onRefusedCount: (count) => metrics.chainsRefused.set(count),
      onPublished: () => {
        for (const sender of senders) void sender.wake()
      },
    }),
  )
  const { isSigning } = worker
  const senders = witnesses.map((witness) => {
    const { name } = witness.key
    const onResult = (result: string) => metrics.checkpointsSent.inc({ witness: name, result })
    const onWaitingCount = (count: number) =>
      metrics.checkpointsUncosigned.set({ witness: name }, count)
    const counts = { onResult, onWaitingCount }
    return stack.use(new WitnessSender({ db, witness, isSigning, logger, ...counts }))
  })
}

type DispatcherParts = Pick<DispatcherOptions, 'box' | 'logger' | 'metrics' | 'audit'> & {
  tracer: Tracer | null
  presence: NodePresence
  role: ServeRole
  database: Database
  destinationRules: DestinationRules
  sharedClock: Clock
}

/** Starts the delivery of webhooks, which API nodes leave to the others. */
export function startDispatcher(
  stack: AsyncDisposableStack,
  {
    role,
    database,
    destinationRules,
    sharedClock: clock,
    box,
    logger,
    metrics,
    audit,
    tracer,
    presence,
  }: DispatcherParts,
): Dispatcher | null {
  if (role === 'api') return null
  const { db } = database
  const names = stack.use(new NameResolver({ mode: destinationRules.mode }))
  const resolve = (hostname: string) => names.resolve(hostname)
  const sender = stack.use(
    new Sender({ connect: createConnector({ rules: destinationRules, resolve }), readRetryAfter }),
  )
  stack.use(startSweepWorker({ db, clock, logger }))
  const reports = { logger, metrics, tracer }
  const parts = { db, sender, random: randomFraction, box, clock, ...reports, audit, presence }
  return stack.use(new Dispatcher(parts))
}
