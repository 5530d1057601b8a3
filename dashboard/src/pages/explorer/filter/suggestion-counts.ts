import { exclusionText } from '../../../query/exclusions.ts'
import type { FilterField } from '../../../query/filter-fields.ts'
import { exclusionsOf, type Filters } from '../../../query/filters.ts'
import type { TimeWindow } from '../../../query/time-window.ts'
import { timesOf } from '../event-queries.ts'

export type SuggestedField = Exclude<FilterField, 'traceId'>

/** What the service should limit the suggested values to, as far as it can. */
export function periodOf(field: SuggestedField, filters: Filters, timeWindow: TimeWindow) {
  if (!isCountable(field)) return {}
  const { category, action } = filters
  const not = countableExclusions(filters)
  return {
    ...timesOf(timeWindow),
    // A new value is added to the others of its field, and doesn't have to match them.
    ...(category !== undefined && field !== 'category' && { category }),
    ...(action !== undefined && field !== 'action' && { action }),
    ...(not.length > 0 && { not }),
  }
}

/** Whether the counts are those of the whole query. Otherwise they would be too high. */
export function isCounted(field: SuggestedField, filters: Filters): boolean {
  const { not = [] } = filters
  const names = Object.keys(filters).filter((name) => name !== 'workspaceId' && name !== 'not')
  return [field, ...names].every(isCountable) && countableExclusions({ not }).length === not.length
}

export function captionOf(field: SuggestedField, filters: Filters): string {
  if (isCounted(field, filters)) return 'Events in this period, with your filters'
  return isCountable(field) ? 'Values in this period' : 'Values in any period'
}

/** The service counts only these two fields fast enough for suggestions. */
function isCountable(field: string): boolean {
  return field === 'category' || field === 'action'
}

function countableExclusions(filters: Pick<Filters, 'not'>): string[] {
  return exclusionsOf(filters)
    .filter(({ field }) => isCountable(field))
    .map(exclusionText)
}
