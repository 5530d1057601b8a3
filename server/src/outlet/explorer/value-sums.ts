import type { ValueCount } from './filter-option/option-store.ts'

/** How many events have a value. Null if the value isn't known or not counted separately. */
type Counted = { value: string | null; events: number }

/** The counts of a hundred workspaces take longer than the main thread may work in one piece. */
export const COUNTS_PER_STEP = 500

/** Adds up the counts of several workspaces. Yields after each step. */
export function* sumByValue(
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

/** The values with the most events. Yields after each step. */
export function* listLargest(
  sums: ReadonlyMap<string, number>,
  limit: number,
): Generator<void, ValueCount[], void> {
  const largest: ValueCount[] = []
  let count = 0
  for (const [value, events] of sums) {
    const candidate = { value, events }
    if (events > 0) insertInOrder(largest, candidate, limit)
    count += 1
    if (count % COUNTS_PER_STEP === 0) yield
  }
  return largest
}

function insertInOrder(sorted: ValueCount[], candidate: ValueCount, limit: number): void {
  const last = sorted.at(-1)
  if (sorted.length >= limit && last && !isBefore(candidate, last)) return
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = sorted[middle]
    if (other && isBefore(candidate, other)) high = middle
    else low = middle + 1
  }
  sorted.splice(low, 0, candidate)
  if (sorted.length > limit) sorted.pop()
}

function isBefore(a: ValueCount, b: ValueCount): boolean {
  return a.events > b.events || (a.events === b.events && a.value < b.value)
}
