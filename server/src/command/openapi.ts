import { serverDeps } from '../app.ts'
import { parseConfig } from '../config.ts'
import { KeyUseRecorder } from '../edge/auth/key-use-recorder.ts'
import { buildServer } from '../edge/server.ts'
import { Writer } from '../intake/writer.ts'
import { systemClock as clock } from '../platform/clock.ts'
import { createLogger } from '../platform/logger.ts'
import { createMetrics } from '../platform/metrics.ts'
import { Database } from '../platform/pg.ts'
import { Secret } from '../platform/secret.ts'
import { SecretBox } from '../platform/secret-box.ts'
import { openArchive } from '../store.ts'

/** `annals openapi`: the document the routes make, as it is committed in openapi/v1.json. */
export async function printOpenapi(): Promise<void> {
  process.stdout.write((await openapiTexts()).v1)
}

/** Builds every route on a pool that never connects: the documents depend on no database. */
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
  await using keyUse = new KeyUseRecorder({ db: database.db, clock, logger })
  await using writer = new Writer({ connection, clock, logger, metrics })
  const config = parseConfig({})
  const server = await buildServer(
    serverDeps({
      config,
      database,
      logger,
      clock,
      metrics,
      keyUse,
      writer,
      secretKey,
      box: new SecretBox(secretKey, 'webhook'),
      destinationRules: { mode: config.webhookDestinations, ports: config.webhookPorts },
      wakeDispatcher: () => {},
      archive: openArchive(config),
    }),
  )
  const documents = { v1: textOf(server.swagger()), dashboard: textOf(server.dashboardSwagger()) }
  await server.close()
  return documents
}

function textOf(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`
}
