import type { SealedEvent } from './event.ts'

/** The start of a list of events, newest first, and whether the list goes on after it. */
export type PartialPage<T = SealedEvent> = { events: T[]; hasMore: boolean }

/**
 * A page ends before its limit when the parts of its events reach this size. Without it, 200 events
 * with large metadata would be 50 MB, and putting them together would hold the main thread.
 */
export const PAGE_BYTES_MAX = 2 * 1_024 * 1_024
const WORKSPACE_BYTES_MIN = 64 * 1_024

/** How much to read of each of several workspaces whose pages are merged into one. */
export function bytesPerWorkspace(workspaces: number): number {
  return Math.max(WORKSPACE_BYTES_MIN, Math.ceil(PAGE_BYTES_MAX / Math.max(1, workspaces)))
}

type Placed = Pick<SealedEvent, 'timestampMs' | 'actor' | 'resource' | 'metadata'> & { id: string }

/**
 * Merges pages into one, newest first, at most `limit` events. It stops where a page ends that has
 * more: the next event of that list is unknown, and could be newer than those of the others.
 */
export function mergePages<T extends Placed>(
  pages: readonly PartialPage<T>[],
  limit: number,
): PartialPage<T> {
  const next = pages.map(() => 0)
  const events: T[] = []
  let bytes = 0
  while (events.length < limit && bytes < PAGE_BYTES_MAX) {
    let newest: T | undefined
    let from = -1
    for (const [index, page] of pages.entries()) {
      const candidate = page.events[next[index] ?? 0]
      if (!candidate && page.hasMore) return { events, hasMore: true }
      if (candidate && (!newest || isNewer(candidate, newest))) {
        newest = candidate
        from = index
      }
    }
    if (!newest) return { events, hasMore: false }
    events.push(newest)
    bytes += sizeOf(newest)
    next[from] = (next[from] ?? 0) + 1
  }
  const hasMore = pages.some(
    (page, index) => page.hasMore || page.events.length > (next[index] ?? 0),
  )
  return { events, hasMore }
}

function sizeOf({ actor, resource, metadata }: Placed): number {
  return (actor?.length ?? 0) + (resource?.length ?? 0) + (metadata?.length ?? 0)
}

function isNewer(a: Placed, b: Placed): boolean {
  return a.timestampMs === b.timestampMs ? a.id > b.id : a.timestampMs > b.timestampMs
}
