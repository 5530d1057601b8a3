import type { Logger } from '../logger.ts'
import { Loop } from '../scheduling/loop.ts'
import { type Connection, PLAIN_SETTINGS } from './servers.ts'
import { PgSession } from './pg-session.ts'

const EVERY_MS = 2_000
const CHECK_MS_MAX = 3_000

/**
 * Opens a connection every two seconds to find out which server is the primary. If it has changed, the list
 * cuts the connections to the former primary. Open connections can't tell: a server that is shutting down
 * still serves them, but refuses new ones.
 */
export function startPrimaryWatch({
  connection,
  logger,
}: {
  connection: Connection
  logger: Logger
}): Loop {
  return new Loop({
    name: 'primary-watch',
    everyMs: EVERY_MS,
    logger,
    run: async (signal) => {
      await using session = new PgSession({
        connection,
        settings: PLAIN_SETTINGS,
        name: 'annals primary watch',
        workMsMax: CHECK_MS_MAX,
        signal,
      })
      // Without a primary, open connections are kept. The write probe and the requests report the outage.
      await session.use(async () => {}).catch(() => {})
    },
  })
}
