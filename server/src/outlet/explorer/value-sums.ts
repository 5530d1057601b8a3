import type { ValueCount } from './filter-option/option-store.ts'

/** How many events have a value. Null if the value isn't known or not counted separately. */
type Counted = { value: string | null; events: number }

/** The counts of a hundred workspaces take longer than the main thread may work in one piece. */
export const COUNTS_PER_STEP = 500

/** Adds up the counts of several workspaces, and returns the values with the most events. Yields after each step. */
export function* listLargest(
  lists: readonly (readonly Counted[])[],
  limit: number,
): Generator<void, ValueCount[], void> {
  const largest: ValueCount[] = []
  let count = 0
  for (const [value, events] of yield* sumByValue(lists)) {
    if (events > 0) insertInOrder(largest, { value, events }, limit)
    count += 1
    if (count % COUNTS_PER_STEP === 0) yield
  }
  return largest
}

function* sumByValue(
  lists: readonly (readonly Counted[])[],
): Generator<void, Map<string, number>, void> {
  const sums = new Map<string, number>()
  let count = 0
  for (const list of lists) {
    for (const { value, events } of list) {
      if (value !== null) sums.set(value, (sums.get(value) ?? 0) + events)
      count += 1
      if (count % COUNTS_PER_STEP === 0) yield
    }
  }
  return sums
}

/** For short lists. */
function insertInOrder(sorted: ValueCount[], candidate: ValueCount, limit: number): void {
  const before = sorted.findLastIndex((other) => !isBefore(candidate, other))
  if (before + 1 >= limit) return
  sorted.splice(before + 1, 0, candidate)
  if (sorted.length > limit) sorted.pop()
}

function isBefore(a: ValueCount, b: ValueCount): boolean {
  return a.events > b.events || (a.events === b.events && a.value < b.value)
}
