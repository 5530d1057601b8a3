import { setTimeout as delay } from 'node:timers/promises'

const POLL_MS = 20
const TIMEOUT_MS = 10_000

/** Retries `check` while it throws, and throws its last error when the time is up. */
export async function eventually<T>(
  check: () => T | Promise<T>,
  { timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<T> {
  const giveUpAtMs = performance.now() + timeoutMs
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (performance.now() >= giveUpAtMs) throw error
    }
    await delay(POLL_MS)
  }
}
