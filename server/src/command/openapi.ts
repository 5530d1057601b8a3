import { serverDeps } from '../app.ts'
import { parseConfig } from '../config.ts'
import { KeyUseRecorder } from '../edge/auth/key-use-recorder.ts'
import { buildServer } from '../edge/server.ts'
import { systemClock as clock } from '../platform/clock.ts'
import { createLogger } from '../platform/logger.ts'
import { createMetrics } from '../platform/metrics.ts'
import { Database } from '../platform/pg.ts'

/** `annals openapi`: the document the routes make, as it is committed in openapi/v1.json. */
export async function printOpenapi(): Promise<void> {
  process.stdout.write(await openapiText())
}

/** Builds every route on a pool that never connects: the document depends on no database. */
export async function openapiText(): Promise<string> {
  const logger = createLogger('silent')
  await using database = new Database({
    connection: { connectionString: 'postgres://localhost/none' },
    role: 'annals_serving',
    connectionsMax: 1,
    logger,
  })
  await using keyUse = new KeyUseRecorder({ db: database.db, clock, logger })
  const config = parseConfig({})
  const server = await buildServer(
    serverDeps({ config, database, logger, clock, metrics: createMetrics(), keyUse }),
  )
  const document = server.swagger()
  await server.close()
  return `${JSON.stringify(document, null, 2)}\n`
}
