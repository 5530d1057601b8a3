import type { EventFilter } from '../../ledger/event-filter.ts'
import type { WorkspaceId } from '../../platform/id.ts'
import type { Queryable } from '../../platform/pg.ts'
import { findTextMatches, type TextMatch } from './value-store.ts'

/** With few values each is read by its index; with few events all of them are. */
const MATCHES_FEW = 40
const MATCHES_MAX = 2_000

/** How to find what holds a text: by the values that hold it, or by looking at the events in turn. */
export type TextPlan = {
  kind: 'values' | 'scan'
  /** The values; null when they are not all known. Events above `seenSeq` may have others. */
  matches: TextMatch[] | null
  seenSeq: number
  events: number
}

/** `eventsMax`: how many events it pays to read by the values. More fill a page soon by looking. */
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
  // Another value of the same field is asked for, or this one is left out: no event has it.
  const possible = matches.filter(
    ({ field, value }) =>
      (filter[field] === null || filter[field] === value) &&
      !filter.excluded?.some((exclusion) => exclusion.field === field && exclusion.value === value),
  )
  const events = possible.reduce((sum, match) => sum + match.events, 0)
  const isFew = possible.length <= MATCHES_FEW || events <= eventsMax
  return { kind: isFew ? 'values' : 'scan', matches: possible, seenSeq, events }
}
