import type { EventFilter } from '../../ledger/event-filter.ts'
import type { Queryable } from '../../platform/pg.ts'
import {
  countByIndex,
  countByMatches,
  countByRollup,
  type CountQuery,
  type EventCount,
} from './event-count-store.ts'
import { planTextSearch } from './search-text.ts'
import type { Scope, Searches } from './searches.ts'
import type { TextMatch } from './value-store.ts'

export type CountWish = Omit<CountQuery, 'workspaceId' | 'hot'>

/** Below this it pays to gather the events of the values; above, to look at each of the range. */
const EVENTS_BY_VALUE_MAX = 50_000
/** To gather this share of the events by an index takes less than to look at all of them. */
const GATHERED_SHARE = 0.25

/** Exact counts of what a walk through the pages would show, of each workspace. */
export async function countEvents(
  searches: Searches,
  scope: Scope,
  wish: CountWish,
): Promise<EventCount[][]> {
  return await searches.readEach(scope, (db, workspaceId, hot) =>
    countWorkspace(db, { workspaceId, hot, ...wish }),
  )
}

async function countWorkspace(db: Queryable, query: CountQuery): Promise<EventCount[]> {
  const { filter, workspaceId } = query
  const { text } = filter
  if (text === null) {
    return isRolledUp(filter) ? await countByRollup(db, query) : await countByIndex(db, query)
  }
  const { matches, seenSeq, events } = await planTextSearch(db, {
    workspaceId,
    filter: { ...filter, text },
    eventsMax: EVENTS_BY_VALUE_MAX,
  })
  if (!matches) return await countByIndex(db, query)
  const known = { matches, seenSeq }
  if (events <= EVENTS_BY_VALUE_MAX) return await countByMatches(db, query, known)
  const gatheredMax = Math.max(EVENTS_BY_VALUE_MAX, (seenSeq - query.hot.floorSeq) * GATHERED_SHARE)
  if (isRolledUp({ ...filter, text: null }) && eventsOf(matches, isFacet) <= gatheredMax) {
    return await countByRollup(db, query, matches)
  }
  return await countByIndex(db, query, known)
}

/** What the roll-up does not know. */
function isFacet({ field }: TextMatch): boolean {
  return field !== 'category' && field !== 'action'
}

function eventsOf(matches: readonly TextMatch[], isMeant: (match: TextMatch) => boolean): number {
  return matches.filter(isMeant).reduce((sum, { events }) => sum + events, 0)
}

/** The roll-up knows time, category and action, asked for or left out. */
export function isRolledUp({
  fromMs: _from,
  toMs: _to,
  category: _c,
  action: _a,
  excluded,
  ...others
}: EventFilter) {
  const isKnown = (excluded ?? []).every(({ field }) => field === 'category' || field === 'action')
  return isKnown && Object.values(others).every((value) => value === null)
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
