import { bodyFilters, listedValues, metadataTexts } from '../../../query/filter-bodies.ts'
import { FILTER_FIELDS } from '../../../query/filter-fields.ts'
import type { Filters } from '../../../query/filters.ts'
import { isPeriod, isRange, type TimeWindow } from '../../../query/time-window.ts'
import { readCountBy } from '../count-by.ts'
import { timesOf } from '../event-queries.ts'
import {
  ALL_WORKSPACES,
  type ExplorerSearch,
  type SearchPatch,
  valuesOf,
} from '../../../query/explorer-search.ts'
import { COLUMN_NAMES } from '../list/columns.ts'
import type { View, ViewQuery } from './views.ts'

/** The part of the query that a view saves: everything but the live tail and the open event. */
export function viewQueryOf(
  { columns, by }: ExplorerSearch,
  { workspaceId: _workspaceId, ...filters }: Filters,
  timeWindow: TimeWindow,
): ViewQuery {
  const groupBy = readCountBy(by)
  const named = columns?.split(',') ?? []
  const chosen = COLUMN_NAMES.filter((name) => named.includes(name))
  return {
    ...bodyFilters(filters),
    ...(timeWindow.range === null ? timesOf(timeWindow) : { range: timeWindow.range }),
    ...(chosen.length > 0 && { columns: chosen }),
    ...(groupBy !== null && { groupBy }),
  }
}

/** Replaces the whole query with that of a view. Removes the fields that the view doesn't set. */
export function viewPatch({
  id,
  workspaceId,
  query,
}: Pick<View, 'id' | 'workspaceId' | 'query'>): SearchPatch {
  const { range, from, to, columns, groupBy, text, not, actorRole } = query
  const patch: SearchPatch = {
    workspaceId: workspaceId ?? ALL_WORKSPACES,
    range: isRange(range) || isPeriod(range) ? range : null,
    from: from ?? null,
    to: to ?? null,
    text: text ?? null,
    not: not ?? null,
    metadata: metadataTexts(query),
    actorRole: actorRole ?? null,
    columns: columns?.join(',') ?? null,
    by: groupBy ?? null,
    live: null,
    event: null,
    view: id,
  }
  for (const field of FILTER_FIELDS) {
    const [first = null, ...others] = [...valuesOf(query[field]), ...listedValues(query, field)]
    patch[field] = first === null || others.length === 0 ? first : [first, ...others]
  }
  return patch
}
