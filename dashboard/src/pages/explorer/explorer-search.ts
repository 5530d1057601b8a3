/** What can be filtered by, each by one value. */
export const FILTER_FIELDS = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
  'projectId',
  'traceId',
] as const
export type FilterField = (typeof FILTER_FIELDS)[number]

const OTHER_FIELDS = [
  'workspaceId',
  'range',
  'from',
  'to',
  'text',
  'by',
  'columns',
  'live',
  'event',
  'view',
] as const
type OtherField = (typeof OTHER_FIELDS)[number]

/** What the address of the explorer says: a link is a view. */
export type ExplorerSearch = Partial<Record<FilterField | OtherField, string>>

/** In place of a workspace: all that whoever opens the link sees. */
export const ALL_WORKSPACES = 'all'

const FIELDS: readonly (keyof ExplorerSearch)[] = [...FILTER_FIELDS, ...OTHER_FIELDS]

/** What is not known is left out; a number in the address is a text like any other. */
export function readExplorerSearch(search: Record<string, unknown>): ExplorerSearch {
  const read: ExplorerSearch = {}
  for (const field of FIELDS) {
    const value = search[field]
    if (typeof value === 'string' && value !== '') read[field] = value
    else if (typeof value === 'number' || typeof value === 'boolean') read[field] = String(value)
  }
  return read
}

/** Null takes a field away. */
export type SearchPatch = Partial<Record<keyof ExplorerSearch, string | null>>

export function patchSearch(search: ExplorerSearch, patch: SearchPatch): ExplorerSearch {
  return readExplorerSearch({ ...search, ...patch })
}
