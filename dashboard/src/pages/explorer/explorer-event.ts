import type { ProvableEvent } from './verify-event.ts'

/** An event as the service sends it to members: the record with what proves it. */
export type ExplorerEvent = ProvableEvent & {
  actor: { id?: string; email?: string; role?: string } | null
  resource: { type?: string; id?: string } | null
  metadata: Record<string, unknown> | null
}

export type EventPage = { data: ExplorerEvent[]; nextCursor: string | null; hotSince: string }

export function actorText({ actor }: ExplorerEvent): string {
  return actor?.email ?? actor?.id ?? actor?.role ?? ''
}

export function resourceText({ resource }: ExplorerEvent): string {
  return [resource?.type, resource?.id].filter((part) => part !== undefined).join('/')
}

/**
 * Two lists, newest first, as one. What is in both (it came while the page was loaded) is there once.
 * `isWhole` is false while older events are still to be loaded: what came late and belongs among
 * them will be loaded with them.
 */
export function mergeEvents(
  fresh: readonly ExplorerEvent[],
  loaded: readonly ExplorerEvent[],
  isWhole: boolean,
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
  return isWhole ? [...merged, ...fresh.slice(next)] : merged
}

/** Newest first by (timestamp, id). */
export function isBefore(a: ExplorerEvent, b: ExplorerEvent): boolean {
  if (a.timestamp !== b.timestamp) return a.timestamp > b.timestamp
  return a.id > b.id
}
