import type { KeyCondition } from '../tenancy/key/key-health.ts'
import type { KeyUse } from '../tenancy/key/key-store.ts'

/** The later of the stored use and the last use on this node. */
export function latestUse(stored: KeyUse | null, noted: KeyUse | null): KeyUse | null {
  if (!stored || !noted) return stored ?? noted
  return noted.usedAt >= stored.usedAt ? noted : stored
}

/** The stored counts, which are for the day of the last use. */
export function callsToday(
  stored: KeyUse | null,
  nowMs: number,
): Pick<KeyCondition, 'callsToday' | 'failuresToday'> {
  const isToday = stored !== null && dayOf(stored.usedAt) === dayOf(new Date(nowMs))
  return isToday
    ? { callsToday: stored.calls, failuresToday: stored.failures }
    : { callsToday: 0, failuresToday: 0 }
}

function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10)
}
