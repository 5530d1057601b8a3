import { shorten } from '../parts/shorten.ts'
import { type Exclusion, EXCLUSIONS_MAX, exclusionText, readExclusion } from './exclusions.ts'
import {
  ALL_WORKSPACES,
  type ExplorerSearch,
  type SearchPatch,
} from '../pages/explorer/explorer-search.ts'
import { FILTER_FIELDS, type FilterField } from './filter-fields.ts'

/** The query without the period. */
export type Filters = Partial<Record<FilterField | 'text' | 'workspaceId', string>> & {
  /** Excluded values, in the notation of the service. */
  not?: string[]
}

export const FIELD_LABELS: Record<FilterField, string> = {
  category: 'category',
  action: 'action',
  actorId: 'actor ID',
  actorEmail: 'actor email',
  resourceType: 'resource type',
  resourceId: 'resource ID',
  projectId: 'project',
  traceId: 'trace ID',
}

export type Chip = {
  field: FilterField | 'text'
  /** The exclusion that the chip stands for. Null for a filter. */
  excluded: string | null
  label: string
  value: string
}

export const TRACE_ID = /^[0-9A-Fa-f]{32}$/

export function filtersOf(search: ExplorerSearch, chosenWorkspaceId: string | null): Filters {
  const filters: Filters = {}
  for (const field of [...FILTER_FIELDS, 'text'] as const) {
    const value = search[field]
    if (value !== undefined) filters[field] = value
  }
  if (search.not !== undefined) filters.not = [...search.not]
  const workspaceId = search.workspaceId ?? chosenWorkspaceId
  if (workspaceId !== null && workspaceId !== ALL_WORKSPACES) filters.workspaceId = workspaceId
  return filters
}

/** Leaves out the text, which has its own input. */
export function chipsOf(filters: Filters, projectName: (id: string) => string): Chip[] {
  const shown = (field: FilterField, value: string) =>
    field === 'projectId' ? projectName(value) : field === 'traceId' ? shorten(value) : value
  const asked = FILTER_FIELDS.flatMap((field): Chip[] => {
    const value = filters[field]
    if (value === undefined) return []
    return [{ field, excluded: null, label: FIELD_LABELS[field], value: shown(field, value) }]
  })
  const excluded = exclusionsOf(filters).map(({ field, value }): Chip => {
    const text = exclusionText({ field, value })
    return { field, excluded: text, label: FIELD_LABELS[field], value: shown(field, value) }
  })
  return [...asked, ...excluded]
}

/** The word "not" marks an excluded value, so that it doesn't depend on styling. */
export function labelOf({ excluded, label }: Chip): string {
  return excluded === null ? label : `not ${label}`
}

export function notText(field: FilterField): string {
  return `not ${FIELD_LABELS[field]}`
}

export function exclusionsOf({ not = [] }: Pick<Filters, 'not'>): Exclusion[] {
  return not.flatMap((text) => readExclusion(text) ?? [])
}

export function mayExclude({ not = [] }: Pick<Filters, 'not'>): boolean {
  return not.length < EXCLUSIONS_MAX
}

/** Removes the chip from the URL. */
export function removePatch({ field, excluded }: Chip): SearchPatch {
  return excluded === null ? { [field]: null } : { include: excluded }
}

export function withoutChip({ not = [], ...filters }: Filters, { field, excluded }: Chip): Filters {
  const others: Filters = filters
  if (excluded === null) delete others[field]
  const kept = not.filter((text) => text !== excluded)
  return kept.length === 0 ? others : { ...others, not: kept }
}

export function clearPatch(): SearchPatch {
  const patch: SearchPatch = { text: null, not: null, view: null }
  for (const field of FILTER_FIELDS) patch[field] = null
  return patch
}
