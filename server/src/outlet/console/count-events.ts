import type { EventFilter } from '../../ledger/event-filter.ts'
import type { Queryable } from '../../platform/pg.ts'
import {
  countByIndex,
  countByMatches,
  countByRollup,
  type CountQuery,
  type EventCount,
} from './event-count-store.ts'
import { readEach, type Scope } from './scope.ts'
import { planTextSearch } from './search-text.ts'
import { withTimeLimit } from './time-limit-store.ts'

export type CountWish = Omit<CountQuery, 'workspaceId' | 'hot'>

/** Below this it pays to gather the events of the values; above, to look at each of the range. */
const EVENTS_BY_VALUE_MAX = 50_000

/** Exact counts of what a walk through the pages would show, of each workspace. */
export async function countEvents(
  db: Queryable,
  scope: Scope,
  wish: CountWish,
): Promise<EventCount[][]> {
  return await readEach(db, scope, (workspaceId, hot) =>
    countWorkspace(db, { workspaceId, hot, ...wish }),
  )
}

async function countWorkspace(db: Queryable, query: CountQuery): Promise<EventCount[]> {
  const { filter, workspaceId } = query
  if (isRolledUp(filter)) return await countByRollup(db, query)
  const { text } = filter
  if (text === null) return await withTimeLimit(db, (trx) => countByIndex(trx, query))
  const plan = await planTextSearch(db, {
    workspaceId,
    filter: { ...filter, text },
    eventsMax: EVENTS_BY_VALUE_MAX,
  })
  const { matches, seenSeq, events } = plan
  return await withTimeLimit(db, (trx) => {
    if (!matches) return countByIndex(trx, query)
    if (events > EVENTS_BY_VALUE_MAX) return countByIndex(trx, query, { matches, seenSeq })
    return countByMatches(trx, query, { matches, seenSeq })
  })
}

/** The roll-up knows time, category and action. */
export function isRolledUp({
  fromMs: _from,
  toMs: _to,
  category: _c,
  action: _a,
  ...others
}: EventFilter) {
  return Object.values(others).every((value) => value === null)
}

/** Counts of several workspaces as those of one. */
export function addCounts(counts: readonly EventCount[]): EventCount[] {
  const sums = new Map<string, EventCount>()
  for (const { barMs, value, events } of counts) {
    const key = `${barMs}/${value === null ? '' : `=${value}`}`
    const sum = sums.get(key)
    if (sum) sum.events += events
    else sums.set(key, { barMs, value, events })
  }
  return [...sums.values()]
}
