import { type ExplorerSearch, patchSearch } from '../../../query/explorer-search.ts'
import { viewPatch } from './view-query.ts'
import type { View } from './views.ts'

/** A link to a view, whatever its query is when it is opened. */
export function viewLink(id: string): string {
  return `${window.location.origin}/app/explorer?view=${id}`
}

/** The explorer itself adds the workspace to a URL without one. */
export function isOnlyView(search: ExplorerSearch): boolean {
  return Object.keys(search).every((field) => field === 'view' || field === 'workspaceId')
}

/** Whether the query differs from that of the view. The live tail and the open event aren't part of it. */
export function isModified(
  search: ExplorerSearch,
  view: Pick<View, 'id' | 'workspaceId' | 'query'>,
): boolean {
  return queryKey(patchSearch(search, viewPatch(view))) !== queryKey(search)
}

function queryKey({ live: _live, event: _event, ...query }: ExplorerSearch): string {
  return JSON.stringify(Object.entries(query).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
