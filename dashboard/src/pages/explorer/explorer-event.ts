import { formatSpan } from '../../parts/time/time.ts'
import type { ReceivedRange, Sort } from '../../query/received.ts'
import type { TimeWindow } from '../../query/time-window.ts'
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
  completeSince: string
  archivedUntil: string | null
}

/** The time since which the explorer has all events, by `timestamp`, and whether any events are archived. */
export type HotTime = {
  sinceMs: number
  /** Like `sinceMs`, by the time of receipt. */
  receivedSinceMs: number
  hasArchived: boolean
}

export function hotTimeOf({ hotSince, completeSince, archivedUntil }: EventPage): HotTime {
  const archivedMs = archivedUntil === null ? 0 : Date.parse(archivedUntil)
  return {
    sinceMs: Math.max(Date.parse(hotSince), archivedMs + 1),
    receivedSinceMs: Date.parse(completeSince),
    hasArchived: archivedUntil !== null,
  }
}

/** Whether the query also asks for events that may be archived. */
export function reachesArchive(
  { sinceMs, receivedSinceMs }: HotTime,
  { fromMs }: Pick<TimeWindow, 'fromMs'>,
  { receivedFrom }: ReceivedRange,
): boolean {
  if (receivedFrom !== undefined && Date.parse(receivedFrom) >= receivedSinceMs) return false
  return fromMs < sinceMs
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
 * Merges two lists in this order, and removes duplicates, which occur if an event arrives while the page
 * loads. `isFull` is false while older events are not loaded yet: late events that belong among them are
 * then left out, because they will be loaded with them.
 */
export function mergeEvents(
  fresh: readonly ExplorerEvent[],
  loaded: readonly ExplorerEvent[],
  { isFull, sort }: { isFull: boolean; sort: Sort },
): readonly ExplorerEvent[] {
  if (fresh.length === 0) return loaded
  const merged: ExplorerEvent[] = []
  let next = 0
  for (const event of loaded) {
    for (; next < fresh.length; next += 1) {
      const candidate = fresh[next]
      if (candidate === undefined || !isBefore(candidate, event, sort)) break
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
  sort: Sort,
): readonly ExplorerEvent[] {
  if (archived.length === 0) return listed
  const byId = new Map([...listed, ...archived].map((event) => [event.id, event]))
  return [...byId.values()].toSorted((a, b) => (isBefore(a, b, sort) ? -1 : 1))
}

/** The events from this time on. If the list is sorted by timestamp, they come first. */
export function since(
  events: readonly ExplorerEvent[],
  fromMs: number,
  sort: Sort,
): readonly ExplorerEvent[] {
  const isSince = ({ timestamp }: ExplorerEvent) => Date.parse(timestamp) >= fromMs
  if (sort === 'receivedAt') return events.every(isSince) ? events : events.filter(isSince)
  const last = events.findLastIndex(isSince)
  return last === events.length - 1 ? events : events.slice(0, last + 1)
}

/**
 * Sorts the last ones first: by (timestamp, id), or by when Annals received them, which is the order of the ids.
 */
export function isBefore(a: ExplorerEvent, b: ExplorerEvent, sort: Sort): boolean {
  if (sort === 'timestamp' && a.timestamp !== b.timestamp) return a.timestamp > b.timestamp
  return a.id > b.id
}
