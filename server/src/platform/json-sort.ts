/** A member of an object whose canonical text is being written. */
export type JsonMember = {
  key: string
  /** The key and the value as canonical JSON. */
  name: string
  text: string
  /** Where the key begins in the source text. */
  at: number
}

/** Sorting a run of this length takes less than a millisecond, and longer runs need fewer merges. */
const RUN_LENGTH = 1_024

/**
 * Sorts members in RFC 8785 order, by the UTF-16 code units of their keys. It is a merge sort that
 * yields every few hundred members, because half a million take most of a second.
 */
export function* sortMembers(
  members: readonly JsonMember[],
): Generator<void, readonly JsonMember[], void> {
  if (members.length <= RUN_LENGTH) return members.toSorted(byKey)
  let runs: JsonMember[][] = []
  for (let start = 0; start < members.length; start += RUN_LENGTH) {
    runs.push(members.slice(start, start + RUN_LENGTH).sort(byKey))
    yield
  }
  while (runs.length > 1) {
    const merged: JsonMember[][] = []
    for (let index = 0; index < runs.length; index += 2) {
      const [left = [], right = []] = runs.slice(index, index + 2)
      merged.push(right.length === 0 ? left : yield* mergeRuns(left, right))
    }
    runs = merged
  }
  return runs[0] ?? []
}

function* mergeRuns(
  left: readonly JsonMember[],
  right: readonly JsonMember[],
): Generator<void, JsonMember[], void> {
  const merged: JsonMember[] = []
  let fromLeft = 0
  let fromRight = 0
  for (;;) {
    const a = left[fromLeft]
    const b = right[fromRight]
    if (a === undefined && b === undefined) return merged
    // Equal keys keep their order.
    if (b === undefined || (a !== undefined && a.key <= b.key)) {
      // If `b` is undefined, `a` is not.
      merged.push(a!)
      fromLeft += 1
    } else {
      merged.push(b)
      fromRight += 1
    }
    if (merged.length % RUN_LENGTH === 0) yield
  }
}

function byKey(a: JsonMember, b: JsonMember): number {
  if (a.key === b.key) return 0
  return a.key < b.key ? -1 : 1
}
