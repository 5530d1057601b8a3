import type { EventFilter } from '../../../ledger/filter/event-filter.ts'
import type { OffsetOf } from '../../../platform/time/time-zone.ts'
import { runInSlices } from '../../../platform/scheduling/time-slice.ts'
import { canRollUpBy, countEvents, hasOnlyRollupFields, isRolledUp } from './count-events.ts'
import { type CountBy, type EventCount, isMetadataPath } from './event-count-store.ts'
import { type Bars, chooseStepS, listBars } from './histogram-step.ts'
import type { TimeRange } from './rollup-ranges.ts'
import type { Scope, Searches } from '../searches.ts'
import { COUNTS_PER_STEP, listLargest } from '../value-sums.ts'

/** People can't distinguish more colors. All other values share one series. */
const SERIES_MAX = 8
/** Per workspace. A rarer value won't be among the top eight overall. */
const VALUES_READ_MAX = 1_000
/** Bars times values of a workspace. If there are more counts, only the top eight values are counted separately. */
const COUNTS_READ_MAX = 10_000
/** Of all workspaces together. */
const ALL_COUNTS_READ_MAX = 100_000

/**
 * Grouping by a field that the roll-up doesn't store reads every event. With more events than this, it would
 * probably take longer than a histogram may.
 */
export const GROUPED_EVENTS_MAX = 100_000

/** Parsing the metadata of an event can take PostgreSQL 50 µs. */
export const GROUPED_METADATA_MAX = 20_000

export type Histogram = {
  range: TimeRange
  stepS: number
  total: number
  bars: Bars
  /** One count per bar. A null value stands for all other values. */
  series: { value: string | null; total: number; counts: number[] }[]
  /** False if there are too many events to group them. Then all are in one series. */
  isGrouped: boolean
}

/** Counts the events in each bar of a range by value. The counts are exact. */
export async function readHistogram(
  searches: Searches,
  scope: Scope,
  { offsetOf, groupedEventsMax = GROUPED_EVENTS_MAX, ...asked }: HistogramQuery,
): Promise<Histogram> {
  const { range, filter } = asked
  const { stepS, bars } = emptyHistogram(range, offsetOf)
  const isGrouped = await mayGroup(searches, scope, asked, groupedEventsMax)
  const by = isGrouped ? asked.by : 'none'
  const options = { range, filter, by, bars: bars.starts }
  const { values, counts } = await readBars(searches, scope, options)
  const series = [...values, null].map((value) => {
    const own = counts.filter((count) => count.value === value)
    const perBar = bars.starts.map(() => 0)
    for (const { bar, events } of own) if (bar !== null) perBar[bar] = events
    return { value, total: own.reduce((sum, { events }) => sum + events, 0), counts: perBar }
  })
  return {
    range,
    stepS,
    total: series.reduce((sum, { total }) => sum + total, 0),
    bars,
    series: series.filter(({ value, total }) => value !== null || total > 0 || by === 'none'),
    isGrouped,
  }
}

export function emptyHistogram(range: TimeRange, offsetOf: OffsetOf): Histogram {
  const stepS = chooseStepS(range, offsetOf)
  const bars = listBars(range, stepS, offsetOf)
  return { range, stepS, total: 0, bars, series: [], isGrouped: true }
}

type HistogramQuery = {
  range: TimeRange
  filter: EventFilter
  by: CountBy
  offsetOf: OffsetOf
  groupedEventsMax?: number
}

type HistogramOptions = Pick<HistogramQuery, 'range' | 'filter' | 'by'> & {
  bars: readonly number[]
}

/**
 * A filter that the roll-up can't answer reads the events anyway, so grouping them by a field costs little more.
 * Grouping by metadata also parses it.
 */
async function mayGroup(
  searches: Searches,
  scope: Scope,
  options: Pick<HistogramQuery, 'range' | 'filter' | 'by'>,
  eventsMax: number,
): Promise<boolean> {
  const isMetadata = isMetadataPath(options.by)
  if (canRollUpBy(options.by)) return true
  if (!isMetadata && !hasOnlyRollupFields(options.filter)) return true
  const total = { ...options, by: 'none', bars: null, values: null, limit: 1 } as const
  const counts = await countEvents(searches, scope, total)
  const events = counts.flat().reduce((sum, count) => sum + count.events, 0)
  return events <= (isMetadata ? Math.min(eventsMax, GROUPED_METADATA_MAX) : eventsMax)
}

/** The counts of every bar, and the values that are counted separately. */
async function readBars(
  searches: Searches,
  scope: Scope,
  options: HistogramOptions,
): Promise<{ values: string[]; counts: EventCount[] }> {
  const { companyId } = scope
  if (!isRolledUp(options.filter) || !canRollUpBy(options.by)) {
    const allMax = Math.floor(ALL_COUNTS_READ_MAX / scope.workspaceIds.length)
    const limit = Math.min(COUNTS_READ_MAX, allMax)
    // Counting event by event is slow, so one pass counts all values.
    const all = await countEvents(searches, scope, { ...options, values: null, limit })
    if (all.every((counts) => counts.length < limit)) {
      const values = options.by === 'none' ? [] : await runInSlices(listTopValues(all), companyId)
      return { values, counts: await runInSlices(addCounts(all, values), companyId) }
    }
  }
  const values = options.by === 'none' ? [] : await readTopValues(searches, scope, options)
  const counts = await countEvents(searches, scope, { ...options, values, limit: COUNTS_READ_MAX })
  return { values, counts: await runInSlices(addCounts(counts, values), companyId) }
}

async function readTopValues(
  searches: Searches,
  scope: Scope,
  options: HistogramOptions,
): Promise<string[]> {
  const counts = await countEvents(searches, scope, {
    ...options,
    bars: null,
    values: null,
    limit: VALUES_READ_MAX,
  })
  return await runInSlices(listTopValues(counts), scope.companyId)
}

function* listTopValues(
  counts: readonly (readonly EventCount[])[],
): Generator<void, string[], void> {
  const top = yield* listLargest(counts, SERIES_MAX)
  return top.map(({ value }) => value)
}

/** Adds up the counts of each bar by value. All values besides these share one count per bar. */
function* addCounts(
  lists: readonly (readonly EventCount[])[],
  values: readonly string[],
): Generator<void, EventCount[], void> {
  const sums = new Map<string | null, Map<number | null, EventCount>>()
  for (const value of [...values, null]) sums.set(value, new Map())
  let count = 0
  for (const list of lists) {
    for (const { bar, value, events } of list) {
      const named = value !== null && sums.has(value) ? value : null
      const perBar = sums.get(named)
      const sum = perBar?.get(bar)
      if (sum) sum.events += events
      else perBar?.set(bar, { bar, value: named, events })
      count += 1
      if (count % COUNTS_PER_STEP === 0) yield
    }
  }
  return [...sums.values()].flatMap((perBar) => [...perBar.values()])
}
