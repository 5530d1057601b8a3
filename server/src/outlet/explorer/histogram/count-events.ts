import {
  EQUALITY_FIELDS,
  type EventFilter,
  hasReceivedRange,
} from '../../../ledger/filter/event-filter.ts'
import { idFloor, readHead } from '../../../ledger/event-store.ts'
import { findSeqOfId } from '../../../ledger/hot/hot-floor-store.ts'
import { areFew, findCandidates } from '../../../ledger/search/candidate-runs.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import {
  type CountBy,
  countByIndex,
  countByMatches,
  countInRuns,
  type CountQuery,
  type EventCount,
} from './event-count-store.ts'
import { countPostings, type PostingOptions } from './count-postings.ts'
import { countByRollup, isInRollup } from './rollup-count-store.ts'
import { planTextSearch, type TextPlan } from '../search-text.ts'
import type { Scope, Searches } from '../searches.ts'
import { countListed, type TextMatch } from '../filter-option/value-store.ts'

type CountOptions = Omit<CountQuery, 'workspaceId' | 'hot'>

/** Up to this many, finding events by their values is faster than checking every event in the range. */
const EVENTS_BY_VALUE_MAX = 50_000
/** Finding up to this share of the events by an index is faster than checking all of them. */
const GATHERED_SHARE = 0.25
/** Reading up to this share of a chain by its order is faster than reading the period by an index. */
const RECEIVED_SHARE = 0.1

/**
 * Returns exact counts for each workspace. They match what paging through the events would show. Several counts of a
 * workspace can have the same bar and value.
 */
export async function countEvents(
  searches: Searches,
  scope: Scope,
  options: CountOptions,
): Promise<EventCount[][]> {
  return await searches.readEach(scope, (db, workspaceId, hot) =>
    countWorkspace(db, { workspaceId, hot, ...options }),
  )
}

async function countWorkspace(db: Queryable, query: CountQuery): Promise<EventCount[]> {
  const { filter } = query
  const { text } = filter
  if (text === null) {
    return (await canUseRollup(db, query, null))
      ? await countByRollup(db, query)
      : await countByBlocks(db, query)
  }
  const inFields = { ...query, filter: { ...filter, text, textIn: 'fields' as const } }
  const inMetadata = { ...query, filter: { ...filter, textIn: 'metadata' as const } }
  const plan = await planTextSearch(db, { ...inFields, eventsMax: EVENTS_BY_VALUE_MAX })
  const textSeq = plan.matches?.length === 0 ? plan.seenSeq : 0
  return [
    ...(await countFieldText(db, inFields, plan)),
    ...(await countByBlocks(db, inMetadata, { textSeq })),
  ]
}

/** Counts by postings, and reads the slices of the other blocks that may have matches, unless those are many. */
async function countByBlocks(
  db: Queryable,
  query: CountQuery,
  options: PostingOptions = {},
): Promise<EventCount[]> {
  const { workspaceId, hot, range } = query
  const filter = { ...query.filter, ...range }
  const candidates = await findCandidates(db, { workspaceId, filter })
  if (!candidates) return await countReceived(db, query)
  const { blocks, seenSeq, headSeq } = candidates
  const { counts, rest } = await countPostings(db, query, blocks, options)
  if (!areFew(rest, headSeq - hot.floorSeq)) return await countByIndex(db, query)
  const runs = rest.flatMap((block) => block.runs)
  return [...counts, ...(await countInRuns(db, query, { runs, seenSeq }))]
}

/** Reads only the end of the chain if the filter's time of receipt starts there. */
async function countReceived(db: Queryable, query: CountQuery): Promise<EventCount[]> {
  const { workspaceId, hot, filter } = query
  if (filter.receivedFromMs === null) return await countByIndex(db, query)
  const headSeq = (await readHead(db, workspaceId))?.seq ?? 0
  const chain = { workspaceId, afterSeq: hot.floorSeq, headSeq }
  const fromSeq = await findSeqOfId(db, chain, idFloor(filter.receivedFromMs))
  const isFew = headSeq - fromSeq < RECEIVED_SHARE * (headSeq - hot.floorSeq)
  if (!isFew) return await countByIndex(db, query)
  return await countInRuns(db, query, { runs: [], seenSeq: fromSeq - 1 })
}

/** Counts the events whose fields contain the text. */
async function countFieldText(
  db: Queryable,
  query: CountQuery & { filter: { text: string } },
  { matches, seenSeq, events }: TextPlan,
): Promise<EventCount[]> {
  if (!matches) return await countByIndex(db, query)
  const known = { matches, seenSeq }
  if (events <= EVENTS_BY_VALUE_MAX) return await countByMatches(db, query, known)
  return (await canUseRollup(db, query, matches))
    ? await countByRollup(db, query, matches)
    : await countByIndex(db, query, known)
}

/** Whether the roll-up can count it and misses only a small share of the events. */
async function canUseRollup(
  db: Queryable,
  { workspaceId, hot, filter, by }: CountQuery,
  matches: readonly TextMatch[] | null,
): Promise<boolean> {
  if (!hasOnlyRollupFields(filter) || !canRollUpBy(by)) return false
  const values = [...(matches ?? []), ...(filter.excluded ?? [])].filter(
    (value) => !isInRollup(value),
  )
  if (values.length === 0) return true
  const listed = await countListed(db, { workspaceId, values })
  if (!listed) return false
  const seen = listed.seenSeq - hot.floorSeq
  return listed.events <= Math.max(EVENTS_BY_VALUE_MAX, seen * GATHERED_SHARE)
}

/** Whether the roll-up alone can answer this filter. */
export function isRolledUp(filter: EventFilter): boolean {
  return (
    hasOnlyRollupFields(filter) && filter.text === null && (filter.excluded ?? []).every(isInRollup)
  )
}

/** Whether the roll-up can group its counts by this field. */
export function canRollUpBy(by: CountBy): boolean {
  return by === 'none' || by === 'category' || by === 'action'
}

/** Whether the roll-up can answer this filter, perhaps with some events that have a text or an excluded value. */
export function hasOnlyRollupFields(filter: EventFilter): boolean {
  if (filter.actorRole !== null || filter.metadata !== null) return false
  if (hasReceivedRange(filter)) return false
  const fields = EQUALITY_FIELDS.filter((field) => filter[field] !== null)
  return [...fields.map((field) => ({ field })), ...(filter.anyOf ?? [])].every(isInRollup)
}
