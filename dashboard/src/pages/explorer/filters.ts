import { shorten } from '../../parts/shorten.ts'
import {
  ALL_WORKSPACES,
  type ExplorerSearch,
  FILTER_FIELDS,
  type FilterField,
  type SearchPatch,
} from './explorer-search.ts'

/** What is asked for, but for the time. */
export type Filters = Partial<Record<FilterField | 'text' | 'workspaceId', string>>

export const FIELD_WORDS: Record<FilterField, string> = {
  category: 'category',
  action: 'action',
  actorId: 'actor id',
  actorEmail: 'actor e-mail',
  resourceType: 'resource type',
  resourceId: 'resource id',
  projectId: 'project',
  traceId: 'trace id',
}

export type Chip = { field: FilterField | 'text'; label: string; value: string }

export const TRACE_ID = /^[0-9A-Fa-f]{32}$/

export function filtersOf(search: ExplorerSearch, chosenWorkspaceId: string | null): Filters {
  const filters: Filters = {}
  for (const field of [...FILTER_FIELDS, 'text'] as const) {
    const value = search[field]
    if (value !== undefined) filters[field] = value
  }
  const workspaceId = search.workspaceId ?? chosenWorkspaceId
  if (workspaceId !== null && workspaceId !== ALL_WORKSPACES) filters.workspaceId = workspaceId
  return filters
}

/** Without the text, which has a field of its own. */
export function chipsOf(filters: Filters, projectName: (id: string) => string): Chip[] {
  return FILTER_FIELDS.flatMap((field) => {
    const value = filters[field]
    if (value === undefined) return []
    const shown = field === 'projectId' ? projectName(value) : value
    return { field, label: FIELD_WORDS[field], value: field === 'traceId' ? shorten(shown) : shown }
  })
}

export function clearPatch(): SearchPatch {
  const patch: SearchPatch = { text: null, view: null }
  for (const field of FILTER_FIELDS) patch[field] = null
  return patch
}
