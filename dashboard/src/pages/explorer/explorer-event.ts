import { formatSpan } from '../../parts/time/time.ts'
import type { VerifiableEvent } from './event/verify-event.ts'

/** An event as the dashboard API returns it, including the data to verify it. */
export type ExplorerEvent = VerifiableEvent & {
  actor: { id?: string; email?: string; role?: string } | null
  resource: { type?: string; id?: string } | null
  metadata: Record<string, unknown> | null
}

export type EventPage = {
  data: ExplorerEvent[]
  nextCursor: string | null
  hotSince: string
  archivedUntil: string | null
}

/** The time since which the explorer has all events, by `timestamp`, and whether any events are archived. */
export type HotTime = { sinceMs: number; hasArchived: boolean }

export function hotTimeOf({ hotSince, archivedUntil }: EventPage): HotTime {
  const archivedMs = archivedUntil === null ? 0 : Date.parse(archivedUntil)
  return {
    sinceMs: Math.max(Date.parse(hotSince), archivedMs + 1),
    hasArchived: archivedUntil !== null,
  }
}

export function actorText({ actor }: ExplorerEvent): string {
  return actor?.email ?? actor?.id ?? actor?.role ?? ''
}

export function resourceText({ resource }: ExplorerEvent): string {
  return [resource?.type, resource?.id].filter((part) => part !== undefined).join('/')
}

const LATE_MS_MIN = 5 * 60_000

/**
 * How far the event's own time is from its receipt, for example "received 3 hours late". Null if it is at most
 * five minutes.
 */
export function delayText({ timestamp, receivedAt }: ExplorerEvent): string | null {
  const delayMs = Date.parse(receivedAt) - Date.parse(timestamp)
  if (Math.abs(delayMs) <= LATE_MS_MIN) return null
  return delayMs > 0
    ? `received ${formatSpan(delayMs)} late`
    : `received ${formatSpan(-delayMs)} before its time`
}

/**
 * Merges two lists, newest first, and removes duplicates, which occur if an event arrives while the page
 * loads. `isFull` is false while older events are not loaded yet: late events that belong among them are
 * then left out, because they will be loaded with them.
 */
export function mergeEvents(
  fresh: readonly ExplorerEvent[],
  loaded: readonly ExplorerEvent[],
  isFull: boolean,
): readonly ExplorerEvent[] {
  if (fresh.length === 0) return loaded
  const merged: ExplorerEvent[] = []
  let next = 0
  for (const event of loaded) {
    for (; next < fresh.length; next += 1) {
      const candidate = fresh[next]
      if (candidate === undefined || !isBefore(candidate, event)) break
      merged.push(candidate)
    }
    if (fresh[next]?.id === event.id) next += 1
    merged.push(event)
  }
  return isFull ? [...merged, ...fresh.slice(next)] : merged
}

/** Adds archived events, which arrive in any order. Some may already be listed. */
export function withArchived(
  listed: readonly ExplorerEvent[],
  archived: readonly ExplorerEvent[],
): readonly ExplorerEvent[] {
  if (archived.length === 0) return listed
  const byId = new Map([...listed, ...archived].map((event) => [event.id, event]))
  return [...byId.values()].toSorted((a, b) => (isBefore(a, b) ? -1 : 1))
}

/** The events from this time on, out of a list with the newest first. */
export function since(events: readonly ExplorerEvent[], fromMs: number): readonly ExplorerEvent[] {
  const last = events.findLastIndex(({ timestamp }) => Date.parse(timestamp) >= fromMs)
  return last === events.length - 1 ? events : events.slice(0, last + 1)
}

/** Sorts newest first, by (timestamp, id). */
export function isBefore(a: ExplorerEvent, b: ExplorerEvent): boolean {
  if (a.timestamp !== b.timestamp) return a.timestamp > b.timestamp
  return a.id > b.id
}
