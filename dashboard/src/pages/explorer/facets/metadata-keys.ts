import type { ExplorerEvent } from '../explorer-event.ts'

/** The keys at the top of the metadata, and how many of the events have each, most frequent first. */
export function countMetadataKeys(
  events: readonly ExplorerEvent[],
  limit: number,
): { value: string; total: number }[] {
  const counts = new Map<string, number>()
  for (const { metadata } of events) {
    for (const key of Object.keys(metadata ?? {})) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return [...counts]
    .map(([value, total]) => ({ value, total }))
    .toSorted((a, b) => b.total - a.total || (a.value < b.value ? -1 : 1))
    .slice(0, limit)
}
