import { parseConfig } from '../src/config.ts'
import { KeyUseRecorder } from '../src/edge/auth/key-use-recorder.ts'
import { DOWNLOAD_BYTES_MAX } from '../src/edge/dashboard/exports/download-guard.ts'
import { LoginGuard } from '../src/edge/auth/login/login-guard.ts'
import { startDownloadRefusals } from '../src/edge/export/download-refusals.ts'
import { OpenConnections } from '../src/edge/http/open-connections.ts'
import { OutputBudget } from '../src/edge/http/output-budget.ts'
import { buildServer } from '../src/edge/server.ts'
import { DOWNLOAD_LIMITS } from '../src/edge/export/download-slots.ts'
import { EXPORT_TIMEOUTS } from '../src/outlet/export/export-timeouts.ts'
import { createServiceAudit } from '../src/intake/audit-entry.ts'
import { Writer } from '../src/intake/writer.ts'
import { readsFrom } from '../src/ledger/replica/chain-reads.ts'
import { LiveTail } from '../src/outlet/explorer/live-tail/live-tail.ts'
import { FeedWaiters } from '../src/outlet/feed/feed-waiters.ts'
import { Searches } from '../src/outlet/explorer/searches.ts'
import { monotonicClock as monotonic, systemClock as clock } from '../src/platform/time/clock.ts'
import { createLogger } from '../src/platform/logger.ts'
import { Mailer } from '../src/platform/mailer.ts'
import { createMetrics } from '../src/platform/metrics.ts'
import { Database } from '../src/platform/pg/database.ts'
import { Secret } from '../src/platform/secret/secret.ts'
import { webhookSecretBox } from '../src/outlet/webhook/secret/webhook-secret.ts'
import { openArchive } from '../src/open-archive.ts'
import { serverDeps } from '../src/server-deps.ts'

/** The documents don't depend on them. */
const NO_SERVICES = { hasArchive: true, signer: null, tracer: null } as const

/**
 * The documents in `openapi`, generated from the routes. Builds every route with a pool that never connects: the
 * documents don't depend on a database.
 */
export async function openapiTexts(): Promise<{ v1: string; dashboard: string }> {
  const logger = createLogger('silent')
  const metrics = createMetrics()
  const connection = { connectionString: 'postgres://localhost/none' }
  const secretKey = new Secret(Buffer.alloc(32))
  await using database = new Database({
    connection,
    role: 'annals_serving',
    connectionsMax: 1,
    logger,
  })
  await using keyUse = new KeyUseRecorder({ db: database.db, clock, monotonic, logger })
  await using writer = new Writer({ connection, clock, logger, metrics })
  const config = parseConfig({})
  const cutSignal = new AbortController().signal
  await using mailer = new Mailer({ smtpUrl: config.smtpUrl, logger, cutSignal })
  await using login = new LoginGuard({
    db: database.db,
    clock,
    monotonic,
    logger,
    mailer,
    hasRateLimits: config.rateLimits === 'on',
  })
  await using refusals = startDownloadRefusals({ db: database.db, monotonic, logger })
  await using liveTail = new LiveTail({ db: database.db, logger })
  await using feedWaiters = new FeedWaiters({ db: database.db, logger, connectionsMax: 0 })
  const server = await buildServer(
    serverDeps({
      ...NO_SERVICES,
      config,
      database,
      accessDatabase: database,
      logger,
      clock,
      monotonic,
      metrics,
      connections: new OpenConnections({ port: 'api', connectionsMax: 0, logger }),
      output: new OutputBudget(),
      keyUse,
      writer,
      mailer,
      login,
      secretKey,
      box: webhookSecretBox(secretKey),
      destinationRules: { mode: config.webhookDestinations, ports: config.webhookPorts },
      wakeDispatcher: () => {},
      wakeVerifier: () => {},
      liveTail,
      feedWaiters,
      reads: readsFrom(database),
      searches: new Searches(readsFrom(database)),
      downloadBytesMax: DOWNLOAD_BYTES_MAX,
      exportTimeouts: EXPORT_TIMEOUTS,
      downloadLimits: DOWNLOAD_LIMITS,
      audit: createServiceAudit(clock),
      refusals,
      pagesFolder: null,
      archive: openArchive(config, { readArchiveId: async () => null }),
    }),
  )
  const documents = {
    v1: serialize(server.describeRoutes('v1')),
    dashboard: serialize(server.describeRoutes('dashboard')),
  }
  await server.close()
  return documents
}

function serialize(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`
}
