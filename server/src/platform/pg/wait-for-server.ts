import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from '../logger.ts'
import { messageOf } from './pg-error.ts'
import type { PgSession } from './pg-session.ts'
import { isStarting } from './servers.ts'

/** For `serve` and `migrate`, which a supervisor often starts together with PostgreSQL. */
export const SERVER_WAIT_MS_MAX = 60_000
const RETRY_MS = 500

/**
 * Connects the session. Retries while PostgreSQL is starting, and rejects with the last error after the
 * time. Any other error, such as a wrong password, rejects immediately.
 */
export async function waitForServer(
  session: PgSession,
  {
    serverWaitMsMax,
    logger,
    signal,
  }: { serverWaitMsMax: number; logger: Logger; signal?: AbortSignal | undefined },
): Promise<void> {
  const startedAtMs = performance.now()
  const waitedMs = (): number => Math.round(performance.now() - startedAtMs)
  for (let attempts = 1; ; attempts += 1) {
    try {
      await session.use(async () => {})
      if (attempts > 1) logger.info({ event: 'database.connected', waitedMs: waitedMs() })
      return
    } catch (error) {
      if (!isStarting(error) || waitedMs() >= serverWaitMsMax) throw error
      const reason = messageOf(error)
      if (attempts === 1) logger.warn({ event: 'database.waiting', reason, serverWaitMsMax })
    }
    await delay(RETRY_MS, undefined, { signal })
  }
}
