import type { EventFilter } from '../../ledger/filter/event-filter.ts'
import type { PageOrder } from '../../ledger/event-page.ts'
import type { ListConditions } from '../../ledger/filter/list-conditions.ts'
import { type FilterInput, invalidParameterError, readFilter } from './event-filter-input.ts'

/** The filters of a list as sent in its query, after validation by its schema. */
type ListInput = Omit<FilterInput, 'category' | 'action' | 'text' | 'not'> & {
  category?: readonly string[]
  action?: readonly string[]
  seqFrom?: number
  seqTo?: number
  order?: PageOrder
}

/** A value that appears alone is part of the filter, so that one category means the same in every API. */
export function readListInput(input: ListInput): {
  filter: EventFilter
  conditions: ListConditions
  order: PageOrder
} {
  const { category, action, order = 'desc', ...fields } = input
  const categories = sortedDistinct(category)
  const actions = sortedDistinct(action)
  const filter = readFilter(fields, { fromPath: 'from' })
  return {
    filter: { ...filter, category: onlyOf(categories), action: onlyOf(actions) },
    conditions: {
      categories: categories.length > 1 ? categories : null,
      actions: actions.length > 1 ? actions : null,
      ...readSeqRange(input),
    },
    order,
  }
}

/** Sorted, because the order of the values doesn't change the list. */
function sortedDistinct(values: readonly string[] = []): string[] {
  return [...new Set(values)].toSorted()
}

function onlyOf(values: readonly string[]): string | null {
  const [first = null, ...others] = values
  return others.length === 0 ? first : null
}

function readSeqRange({ seqFrom, seqTo }: ListInput) {
  if (seqFrom !== undefined && seqTo !== undefined && seqFrom > seqTo) {
    throw invalidParameterError('seqFrom', 'must be at most seqTo')
  }
  return { seqFrom: seqFrom ?? null, seqTo: seqTo ?? null }
}
