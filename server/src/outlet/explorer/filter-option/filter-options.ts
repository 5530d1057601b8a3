import type { EventFilter } from '../../../ledger/filter/event-filter.ts'
import { foldCase } from '../../../platform/fold-case.ts'
import { runInSlices } from '../../../platform/scheduling/time-slice.ts'
import type { ValueField } from '../../../ledger/rollup/rollup-store.ts'
import { countEvents } from '../histogram/count-events.ts'
import { countValues, listValues, type ValueCount } from './option-store.ts'
import type { TimeRange } from '../histogram/rollup-ranges.ts'
import type { Scope, Searches } from '../searches.ts'
import { listLargest } from '../value-sums.ts'
import { hasEveryValue } from './value-store.ts'

type FilterOptionsQuery = {
  field: ValueField
  contains: string | null
  /** Only for category and action. Other fields are counted over all hot events. */
  range: TimeRange | null
  /** The events to count. Only applies to fields counted within a range. */
  filter: EventFilter
  limit: number
}

type FilterOptions = {
  values: ValueCount[]
  /** False if a workspace has more values of the field than the list can keep. */
  isComplete: boolean
}

/** Per workspace. With several workspaces, more values than requested are read to find the overall top. */
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
  const first = await runInSlices(listLargest(counts, options.limit), scope.companyId)
  if (!isCut(scope, { counts, limit })) return { values: first, isComplete }
  const values = first.map(({ value }) => value)
  const exact = await searches.readEach(scope, (db, workspaceId, hot) =>
    countValues(db, { workspaceId, hot, field, values }),
  )
  return {
    values: await runInSlices(listLargest(exact, options.limit), scope.companyId),
    isComplete,
  }
}

type CountedQuery = FilterOptionsQuery & { range: TimeRange; field: 'category' | 'action' }

/** Other fields come from the list of values, whatever the range. */
function isCounted(options: FilterOptionsQuery): options is CountedQuery {
  return options.range !== null && (options.field === 'category' || options.field === 'action')
}

async function countOptions(
  searches: Searches,
  scope: Scope,
  options: CountedQuery,
): Promise<ValueCount[]> {
  const { field, contains, range, filter } = options
  const limit = limitOf(scope, options)
  const count = (values: readonly string[] | null) =>
    countEvents(searches, scope, {
      range,
      filter,
      by: field,
      bars: null,
      values,
      ...(contains !== null && { contains: foldCase(contains) }),
      limit,
    })
  const counts = await count(null)
  const first = await runInSlices(listLargest(counts, options.limit), scope.companyId)
  if (!isCut(scope, { counts, limit })) return first
  const exact = await count(first.map(({ value }) => value))
  return await runInSlices(listLargest(exact, options.limit), scope.companyId)
}

function limitOf({ workspaceIds }: Scope, { limit }: FilterOptionsQuery): number {
  return workspaceIds.length === 1 ? limit : VALUES_READ_MAX
}

/** Whether a workspace may have more values, so that the sums may be incomplete. */
function isCut(
  { workspaceIds }: Scope,
  { counts, limit }: { counts: readonly (readonly unknown[])[]; limit: number },
): boolean {
  return workspaceIds.length > 1 && counts.some((list) => list.length >= limit)
}
