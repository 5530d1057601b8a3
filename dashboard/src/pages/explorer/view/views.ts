import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import type { paths } from '../../../api/schema.d.ts'
import { COLUMN_NAMES } from '../list/columns.ts'
import {
  ALL_WORKSPACES,
  type ExplorerSearch,
  type SearchPatch,
  valuesOf,
} from '../explorer-search.ts'
import { FILTER_FIELDS } from '../../../query/filter-fields.ts'
import { bodyFilters, type Filters, listedValues } from '../../../query/filters.ts'
import { type TimeWindow, isRange } from '../../../query/time-window.ts'
import { timesOf } from '../event-queries.ts'

export type View =
  paths['/dashboard/explorer/views']['get']['responses'][200]['content']['application/json']['views'][number]
export type ViewQuery = View['query']

export const VIEWS_KEY = ['views'] as const

export function useViews() {
  return useQuery({
    queryKey: VIEWS_KEY,
    queryFn: async () => (await unwrap(client.GET('/dashboard/explorer/views'))).views,
    staleTime: 30_000,
  })
}

export async function refreshViews(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: VIEWS_KEY })
}

/** The part of the query that a view saves: everything but the live tail and the open event. */
export function viewQueryOf(
  { columns, by }: ExplorerSearch,
  { workspaceId: _workspaceId, ...filters }: Filters,
  timeWindow: TimeWindow,
): ViewQuery {
  const named = columns?.split(',') ?? []
  const chosen = COLUMN_NAMES.filter((name) => named.includes(name))
  return {
    ...bodyFilters(filters),
    ...(timeWindow.range === null ? timesOf(timeWindow) : { range: timeWindow.range }),
    ...(chosen.length > 0 && { columns: chosen }),
    ...((by === 'category' || by === 'action') && { groupBy: by }),
  }
}

/** Replaces the whole query with that of a view. Removes the fields that the view doesn't set. */
export function viewPatch({
  id,
  workspaceId,
  query,
}: Pick<View, 'id' | 'workspaceId' | 'query'>): SearchPatch {
  const { range, from, to, columns, groupBy, text, not } = query
  const patch: SearchPatch = {
    workspaceId: workspaceId ?? ALL_WORKSPACES,
    range: range !== undefined && isRange(range) ? range : null,
    from: from ?? null,
    to: to ?? null,
    text: text ?? null,
    not: not ?? null,
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
