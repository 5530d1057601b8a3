import type { MonotonicClock } from '../platform/time/clock.ts'
import { assertId } from '../platform/id.ts'
import type { SealedEvent } from './event.ts'

/** A position in a list, which is ordered by timestamp, then id. */
export type PagePosition = { timestampMs: number; id: string }

/** `desc` is newest first. */
export type PageOrder = 'asc' | 'desc'
/**
 * `received` is the order of the chains, the last received first. Over several chains, that is the order of the
 * ids: they ascend along each chain, and have the time of receipt unless a clock was set back.
 */
export type ListOrder = PageOrder | 'received'

/** The position as text, for a cursor. */
export function pagePositionText({ timestampMs, id }: PagePosition): string {
  return `${timestampMs}/${id}`
}

/** Reads what `pagePositionText` wrote. Cursors are signed, so the text is ours. */
export function readPagePosition(text: string): PagePosition {
  const [ms = '', id = ''] = text.split('/')
  return { timestampMs: Number(ms), id: assertId(id) }
}

/**
 * The start of a list of events. `next` is null if the list ends here. Otherwise the page has all events up
 * to that position, and the list may continue after it.
 */
export type PartialPage<T = SealedEvent> = { events: T[]; next: PagePosition | null }

/**
 * A page ends before its limit when the parts of its events reach this size. Without it, 200 events with
 * large metadata would take 50 MB, and concatenating them would block the main thread.
 */
export const PAGE_BYTES_MAX = 2 * 1_024 * 1_024
const WORKSPACE_BYTES_MIN = 64 * 1_024

/** How many bytes to read per workspace when the pages of several workspaces are merged into one. */
export function bytesPerWorkspace(workspaces: number): number {
  return Math.max(WORKSPACE_BYTES_MIN, Math.ceil(PAGE_BYTES_MAX / Math.max(1, workspaces)))
}

/** How many rows a scan may read per workspace when the pages of several workspaces are merged into one. */
export function rowsPerWorkspace(workspaces: number): number {
  return Math.max(WORKSPACE_ROWS_MIN, Math.ceil(SCANNED_ROWS_MAX / Math.max(1, workspaces)))
}

/** A scan of this many rows takes 11 to 15 ms of PostgreSQL's CPU time. */
export const SCANNED_ROWS_MAX = 5_000
const WORKSPACE_ROWS_MIN = 500

type Positioned = Pick<SealedEvent, 'timestampMs' | 'actor' | 'resource' | 'metadata'> & {
  id: string
}

/**
 * Merges pages into one of at most `limit` events. Stops at the first position where a page with more
 * events to follow ends: the next event of that list is unknown, and could come before those of the others.
 */
export function mergePages<T extends Positioned>(
  pages: readonly PartialPage<T>[],
  limit: number,
  order: ListOrder = 'desc',
): PartialPage<T> {
  const isFirst = (a: PagePosition, b: PagePosition) => comesBefore(a, b, order)
  const ends = pages.flatMap(({ next }) => next ?? [])
  const end = ends.toSorted((a, b) => (isFirst(a, b) ? -1 : 1))[0] ?? null
  const merged = pages.map(() => 0)
  const events: T[] = []
  let bytes = 0
  for (;;) {
    let first: T | undefined
    let from = -1
    for (const [index, page] of pages.entries()) {
      const candidate = page.events[merged[index] ?? 0]
      if (candidate && (!first || isFirst(candidate, first))) {
        first = candidate
        from = index
      }
    }
    if (!first || (end && isFirst(end, first))) return { events, next: end }
    if (events.length >= limit || bytes >= PAGE_BYTES_MAX)
      return { events, next: lastPosition(events) }
    events.push(first)
    bytes += sizeOf(first)
    merged[from] = (merged[from] ?? 0) + 1
  }
}

/** How long a request may continue scanning for more events after its first scan. */
const FILL_MS_MAX = 500

/**
 * Reads until the page is full or the list ends. A scan reads a bounded number of rows, which may contain
 * few matches or none, and an almost empty page costs the client another request. Stops when `mayContinue`
 * returns false, or after half a second, and returns the events found until then.
 */
export async function fillPage<T extends Positioned>(
  readRound: (after: PagePosition | null, limit: number) => Promise<PartialPage<T>>,
  {
    after,
    limit,
    monotonic,
    mayContinue,
  }: {
    after: PagePosition | null
    limit: number
    monotonic: MonotonicClock
    mayContinue: () => boolean
  },
): Promise<PartialPage<T>> {
  const endMs = monotonic() + FILL_MS_MAX
  const events: T[] = []
  let bytes = 0
  let next = after
  do {
    const page = await readRound(next, limit - events.length)
    events.push(...page.events)
    bytes += page.events.reduce((sum, event) => sum + sizeOf(event), 0)
    next = page.next
  } while (
    next !== null &&
    events.length < limit &&
    bytes < PAGE_BYTES_MAX &&
    monotonic() < endMs &&
    mayContinue()
  )
  return { events, next }
}

/** The position of the last event, or null if there is none. */
export function lastPosition(
  events: readonly Pick<Positioned, keyof PagePosition>[],
): PagePosition | null {
  const last = events.at(-1)
  return last ? { timestampMs: last.timestampMs, id: last.id } : null
}

function sizeOf({ actor, resource, metadata }: Positioned): number {
  return (actor?.length ?? 0) + (resource?.length ?? 0) + (metadata?.length ?? 0)
}

export function comesBefore(a: PagePosition, b: PagePosition, order: ListOrder): boolean {
  if (order === 'received') return a.id > b.id
  const [low, high] = order === 'asc' ? [a, b] : [b, a]
  return low.timestampMs === high.timestampMs
    ? low.id < high.id
    : low.timestampMs < high.timestampMs
}
