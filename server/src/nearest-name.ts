const TYPOS_MAX = 3

/** The name that was probably meant, or null if none is close. */
export function nearestName(typed: string, names: readonly string[]): string | null {
  const [nearest] = names
    .map((name) => ({ name, typos: editDistance(name, typed) }))
    .toSorted((a, b) => a.typos - b.typos)
  return nearest && nearest.typos <= TYPOS_MAX ? nearest.name : null
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substituted))
    }
    row = next
  }
  return row[b.length] ?? 0
}
