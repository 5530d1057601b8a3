import { setTimeout as delay } from 'node:timers/promises'
import type { SentEvents } from './sent-events.ts'
import type { HttpClient, Reply } from './http-client.ts'
import type { Recovery } from './recovery.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { SoakReceivers } from './soak-receivers.ts'
import type { SoakService } from './soak-service.ts'
import type { Tally } from './tally.ts'
import type { Verdicts } from './verdicts.ts'
import type { World } from './world.ts'

/** Shared by every activity, fault and check of the soak test. */
export type SoakContext = {
  service: SoakService
  world: World
  http: HttpClient
  book: SentEvents
  receivers: SoakReceivers
  recovery: Recovery
  tally: Tally
  verdicts: Verdicts
  random: SeededRandom
  /** Aborted when the load should end. */
  stopping: AbortSignal
  /** True for the checks after the load. */
  isFinal: boolean
}

/** Counts a response, and fails the soak test if its status is not one of the expected ones. */
export function checkReply(
  { recovery, tally, verdicts }: Pick<SoakContext, 'recovery' | 'tally' | 'verdicts'>,
  activity: string,
  reply: Reply,
  allowed: readonly number[],
): void {
  const { status } = reply
  const code = status !== null && status >= 400 ? ` ${String(reply.json?.code)}` : ''
  const outcome = status === null ? 'broken' : `${status}${code}`
  tally.count(activity, outcome)
  tally.time(activity, reply.durationMs)
  const isRefused = status === null || status === 503
  if (isRefused && !recovery.isFaultActive) tally.count('outside faults', `${activity} ${outcome}`)
  if (status === null) return
  verdicts.check(
    'responses',
    allowed.includes(status),
    () => `${activity} returned ${status}: ${reply.text.slice(0, 300)}`,
  )
}

/** Waits until the time is up or the load ends. */
export async function pause({ stopping }: Pick<SoakContext, 'stopping'>, ms: number) {
  await delay(ms, undefined, { signal: stopping }).catch(() => {})
}
