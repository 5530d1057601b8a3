import { bodyFilters, listedValues, metadataTexts } from '../../../query/filter-bodies.ts'
import { FILTER_FIELDS } from '../../../query/filter-fields.ts'
import type { Filters } from '../../../query/filters.ts'
import { readSort, sortPatch } from '../../../query/received.ts'
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
  { columns, sort, by }: ExplorerSearch,
  { workspaceId: _workspaceId, ...filters }: Filters,
  timeWindow: TimeWindow,
): ViewQuery {
  const groupBy = readCountBy(by)
  const named = columns?.split(',') ?? []
  const chosen = COLUMN_NAMES.filter((name) => named.includes(name))
  return {
    ...bodyFilters(filters),
    ...(timeWindow.range === null ? timesOf(timeWindow) : { range: timeWindow.range }),
    ...(readSort(sort) === 'receivedAt' && { sort: 'receivedAt' as const }),
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
  const {
    range,
    from,
    to,
    receivedFrom,
    receivedTo,
    sort,
    columns,
    groupBy,
    text,
    not,
    actorRole,
  } = query
  const patch: SearchPatch = {
    workspaceId: workspaceId ?? ALL_WORKSPACES,
    range: isRange(range) || isPeriod(range) ? range : null,
    from: from ?? null,
    to: to ?? null,
    receivedFrom: receivedFrom ?? null,
    receivedTo: receivedTo ?? null,
    text: text ?? null,
    ...sortPatch(readSort(sort)),
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
