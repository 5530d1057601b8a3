import type { SealedEvent } from '../../../src/ledger/event.ts'
import { type EventFilter, matchEvent } from '../../../src/ledger/filter/event-filter.ts'
import {
  compareAtOnce,
  MetadataText,
  TermsMatcher,
  ValueMatcher,
} from '../../../src/ledger/search/metadata-match.ts'
import type { MetadataTerm } from '../../../src/ledger/search/metadata-term.ts'

/** Whether an event's metadata has what every term requires. */
export function hasTerms(metadata: string | null, terms: readonly MetadataTerm[]): boolean {
  if (metadata === null) return false
  return compareAtOnce(new TermsMatcher(terms).compare(new MetadataText(metadata)))
}

/** Whether a value in an event's metadata equals the text. */
export function hasMetadataValue(metadata: string, text: string): boolean {
  return compareAtOnce(new ValueMatcher(text).compare(new MetadataText(metadata)))
}

/** Whether an event matches, computed in one piece. */
export function matchesFilter(event: SealedEvent, filter: EventFilter): boolean {
  return compareAtOnce(matchEvent(event, filter))
}
