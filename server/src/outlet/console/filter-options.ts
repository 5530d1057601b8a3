import { type EventFilter, NO_FILTER } from '../../ledger/event-filter.ts'
import { foldCase } from '../../ledger/fold-case.ts'
import type { ValueField } from '../../ledger/rollup-store.ts'
import { countEvents } from './count-events.ts'
import { countValues, listValues, type ValueCount } from './option-store.ts'
import type { TimeRange } from './rollup-ranges.ts'
import type { Scope, Searches } from './searches.ts'
import { hasEveryValue } from './value-store.ts'

export type FilterOptionsQuery = {
  field: ValueField
  contains: string | null
  /** For category and action; the other fields are counted over all that is hot. */
  range: TimeRange | null
  /** Events that are left out of the counts; for what is counted within a range alone. */
  excluded: EventFilter['excluded']
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
  options: FilterOptionsQuery,
): Promise<FilterOptions> {
  if (isCounted(options))
    return { values: await countOptions(searches, scope, options), isComplete: true }
  const { field, contains } = options
  const limit = limitOf(scope, options)
  const lists = await searches.readEach(scope, async (db, workspaceId, hot) => ({
    counts: await listValues(db, { workspaceId, hot, field, contains, limit }),
    isComplete: await hasEveryValue(db, { workspaceId, field }),
  }))
  const isComplete = lists.every((list) => list.isComplete)
  const counts = lists.map((list) => list.counts)
  const first = firstOf(counts.flat(), options.limit)
  if (!isCut(scope, { counts, limit })) return { values: first, isComplete }
  const values = first.map(({ value }) => value)
  const exact = await searches.readEach(scope, (db, workspaceId, hot) =>
    countValues(db, { workspaceId, hot, field, values }),
  )
  return { values: firstOf(exact.flat(), options.limit), isComplete }
}

type CountedQuery = FilterOptionsQuery & { range: TimeRange; field: 'category' | 'action' }

/** The others are read off the list of values, whatever the range. */
function isCounted(options: FilterOptionsQuery): options is CountedQuery {
  return options.range !== null && (options.field === 'category' || options.field === 'action')
}

async function countOptions(
  searches: Searches,
  scope: Scope,
  options: CountedQuery,
): Promise<ValueCount[]> {
  const { field, contains, range, excluded } = options
  const limit = limitOf(scope, options)
  const count = async (values: readonly string[] | null) => {
    const lists = await countEvents(searches, scope, {
      range,
      filter: { ...NO_FILTER, excluded },
      by: field,
      stepS: null,
      values,
      ...(contains !== null && { contains: foldCase(contains) }),
      limit,
    })
    return lists.map((list) =>
      list.flatMap(({ value, events }) => (value === null ? [] : [{ value, events }])),
    )
  }
  const counts = await count(null)
  const first = firstOf(counts.flat(), options.limit)
  if (!isCut(scope, { counts, limit })) return first
  return firstOf((await count(first.map(({ value }) => value))).flat(), options.limit)
}

function limitOf({ workspaceIds }: Scope, { limit }: FilterOptionsQuery): number {
  return workspaceIds.length === 1 ? limit : VALUES_READ_MAX
}

/** Where every workspace gave all it has, the sums are whole already. */
function isCut(
  { workspaceIds }: Scope,
  { counts, limit }: { counts: readonly ValueCount[][]; limit: number },
): boolean {
  return workspaceIds.length > 1 && counts.some((list) => list.length >= limit)
}

function firstOf(counts: readonly ValueCount[], limit: number): ValueCount[] {
  const sums = new Map<string, number>()
  for (const { value, events } of counts) sums.set(value, (sums.get(value) ?? 0) + events)
  return [...sums]
    .map(([value, events]) => ({ value, events }))
    .filter(({ events }) => events > 0)
    .toSorted((a, b) => b.events - a.events || (a.value < b.value ? -1 : 1))
    .slice(0, limit)
}
