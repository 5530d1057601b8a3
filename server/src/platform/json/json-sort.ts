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
      merged.push(yield* mergeRuns(left, right))
    }
    runs = merged
  }
  return runs[0] ?? []
}

/** Equal keys keep their order. */
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
    if (a === undefined || b === undefined) break
    const isLeft = a.key <= b.key
    merged.push(isLeft ? a : b)
    if (isLeft) fromLeft += 1
    else fromRight += 1
    if (merged.length % RUN_LENGTH === 0) yield
  }
  return merged.concat(left.slice(fromLeft), right.slice(fromRight))
}

function byKey(a: JsonMember, b: JsonMember): number {
  if (a.key === b.key) return 0
  return a.key < b.key ? -1 : 1
}
