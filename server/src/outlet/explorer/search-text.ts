import type { EventFilter } from '../../ledger/filter/event-filter.ts'
import { valuesByField } from '../../ledger/filter/exclusion.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg/database.ts'
import { findTextMatches, type TextMatch } from './filter-option/value-store.ts'

/** Up to this many values, a search reads each by its index, however many events they have. */
const MATCHES_FEW = 40
const MATCHES_MAX = 2_000

/** How to find events that contain a text: by the values that contain it, or by scanning the events. */
export type TextPlan = {
  kind: 'values' | 'scan'
  /** The values, or null if not all are known. Events above `seenSeq` may have others. */
  matches: TextMatch[] | null
  seenSeq: number
  events: number
}

/** Up to `eventsMax` events are read by their values. If there are more, a scan soon fills a page. */
export async function planTextSearch(
  db: Queryable,
  {
    workspaceId,
    filter,
    eventsMax,
  }: { workspaceId: WorkspaceId; filter: EventFilter & { text: string }; eventsMax: number },
): Promise<TextPlan> {
  const { matches, seenSeq, isComplete } = await findTextMatches(db, {
    workspaceId,
    text: filter.text,
    limit: MATCHES_MAX,
  })
  if (!isComplete) return { kind: 'scan', matches: null, seenSeq, events: 0 }
  // If the filter requires another value of the field, or excludes this one, no event can match by it.
  const listed = valuesByField(filter.anyOf ?? [])
  const possible = matches.filter(
    ({ field, value }) =>
      (filter[field] === null || filter[field] === value) &&
      (listed.get(field)?.includes(value) ?? true) &&
      !filter.excluded?.some((exclusion) => exclusion.field === field && exclusion.value === value),
  )
  const events = possible.reduce((sum, match) => sum + match.events, 0)
  const isFew = possible.length <= MATCHES_FEW || events <= eventsMax
  return { kind: isFew ? 'values' : 'scan', matches: possible, seenSeq, events }
}
