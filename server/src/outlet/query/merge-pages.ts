type Placed = { timestampMs: number; id: string }

/** The first `limit` of several lists, each newest first, as one list, newest first. */
export function mergePages<T extends Placed>(pages: readonly (readonly T[])[], limit: number): T[] {
  if (pages.length === 1) return [...(pages[0] ?? [])].slice(0, limit)
  const next = pages.map(() => 0)
  const merged: T[] = []
  while (merged.length < limit) {
    let newest: T | undefined
    let from = -1
    for (const [index, page] of pages.entries()) {
      const candidate = page[next[index] ?? 0]
      if (candidate && (!newest || isNewer(candidate, newest))) {
        newest = candidate
        from = index
      }
    }
    if (!newest) break
    merged.push(newest)
    next[from] = (next[from] ?? 0) + 1
  }
  return merged
}

function isNewer(a: Placed, b: Placed): boolean {
  return a.timestampMs === b.timestampMs ? a.id > b.id : a.timestampMs > b.timestampMs
}
