import { NO_FILTER } from '../../ledger/event-filter.ts'
import { foldCase } from '../../ledger/fold-case.ts'
import type { ValueField } from '../../ledger/rollup-store.ts'
import { countEvents } from './count-events.ts'
import type { TimeRange } from './rollup-ranges.ts'
import type { Scope, Searches } from './searches.ts'
import { hasEveryValue, listValues, type ValueCount } from './value-store.ts'

export type OptionsWish = {
  field: ValueField
  contains: string | null
  /** For category and action; the other fields are counted over all that is hot. */
  range: TimeRange | null
  limit: number
}

export type FilterOptions = {
  values: ValueCount[]
  /** False when a workspace has more values of the field than are listed. */
  isComplete: boolean
}

/** Of several workspaces more than asked for is read, so that their first ones can be found together. */
const VALUES_READ_MAX = 1_000

/** The most frequent values of a field, with exact counts. */
export async function readFilterOptions(
  searches: Searches,
  scope: Scope,
  wish: OptionsWish,
): Promise<FilterOptions> {
  const isOne = scope.workspaceIds.length === 1
  const limit = isOne ? wish.limit : VALUES_READ_MAX
  const found = await readValues(searches, scope, { ...wish, limit, values: null })
  const first = firstOf(found.flat(), wish.limit)
  const completeness = await searches.readEach(scope, (db, workspaceId) =>
    hasEveryValue(db, { workspaceId, field: wish.field }),
  )
  const isComplete = isCounted(wish) || completeness.every(Boolean)
  // Where every workspace gave all it has, the sums are whole already.
  const isCut = !isOne && found.some((counts) => counts.length >= limit)
  if (!isCut) return { values: first, isComplete }
  const values = first.map(({ value }) => value)
  const exact = await readValues(searches, scope, { ...wish, limit: VALUES_READ_MAX, values })
  return { values: firstOf(exact.flat(), wish.limit), isComplete }
}

async function readValues(
  searches: Searches,
  scope: Scope,
  wish: OptionsWish & { values: readonly string[] | null },
): Promise<ValueCount[][]> {
  const { contains } = wish
  if (isCounted(wish)) {
    const { field, range } = wish
    const counts = await countEvents(searches, scope, {
      range,
      filter: NO_FILTER,
      by: field,
      stepS: null,
      values: wish.values,
      ...(contains !== null && { contains: foldCase(contains) }),
      limit: wish.limit,
    })
    return counts.map((list) =>
      list.flatMap(({ value, events }) => (value === null ? [] : [{ value, events }])),
    )
  }
  return await searches.readEach(scope, (db, workspaceId, hot) =>
    listValues(db, { workspaceId, hot, ...wish }),
  )
}

/** The others are read off the list of values, whatever the range. */
function isCounted<T extends OptionsWish>(
  wish: T,
): wish is T & { range: TimeRange; field: 'category' | 'action' } {
  return wish.range !== null && (wish.field === 'category' || wish.field === 'action')
}

function firstOf(counts: readonly ValueCount[], limit: number): ValueCount[] {
  const sums = new Map<string, number>()
  for (const { value, events } of counts) sums.set(value, (sums.get(value) ?? 0) + events)
  return [...sums]
    .map(([value, events]) => ({ value, events }))
    .toSorted((a, b) => b.events - a.events || (a.value < b.value ? -1 : 1))
    .slice(0, limit)
}
