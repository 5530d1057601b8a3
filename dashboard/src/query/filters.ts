import { shorten } from '../parts/text/shorten.ts'
import {
  EXCLUDABLE_FIELDS,
  type ExcludableField,
  type Exclusion,
  EXCLUSIONS_MAX,
  exclusionText,
  isExcludable,
  readExclusion,
  VALUES_PER_FIELD_MAX,
} from './exclusions.ts'
import {
  ALL_WORKSPACES,
  type ExplorerSearch,
  type SearchPatch,
  valuesOf,
} from './explorer-search.ts'
import { FILTER_FIELDS, type FilterField } from './filter-fields.ts'
import { readMetadata } from './metadata.ts'
import { hasReceived, type ReceivedRange, receivedRangeOf, receivedText } from './received.ts'

/** The query without the period. An event must have one of the values of each field. */
export type Filters = Partial<Record<ExcludableField, string[]>> &
  Partial<Record<'traceId' | 'actorRole' | 'text' | 'workspaceId', string>> &
  ReceivedRange & {
    /** Excluded values, in the notation of the service. */
    not?: string[]
    /** Filters by metadata, in the notation of the URL. */
    metadata?: string[]
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
  field: FilterField | 'received' | 'actorRole' | 'metadata' | 'text'
  /** The exclusion that the chip stands for. Null for a filter. */
  excluded: string | null
  label: string
  /** The value as shown. */
  value: string
  /** The value in the URL. */
  raw: string
}

export const TRACE_ID = /^[0-9A-Fa-f]{32}$/

export function filtersOf(search: ExplorerSearch, chosenWorkspaceId: string | null): Filters {
  const filters: Filters = { ...receivedRangeOf(search) }
  for (const field of EXCLUDABLE_FIELDS) {
    const values = valuesOf(search[field])
    if (values.length > 0) filters[field] = [...values]
  }
  for (const field of ['traceId', 'actorRole', 'text'] as const) {
    const value = search[field]
    if (value !== undefined) filters[field] = value
  }
  if (search.not !== undefined) filters.not = [...search.not]
  if (search.metadata !== undefined) filters.metadata = [...search.metadata]
  const workspaceId = search.workspaceId ?? chosenWorkspaceId
  if (workspaceId !== null && workspaceId !== ALL_WORKSPACES) filters.workspaceId = workspaceId
  return filters
}

/** Leaves out the text, which has its own input. */
export function chipsOf(filters: Filters, projectName: (id: string) => string): Chip[] {
  const shown = (field: FilterField, value: string) =>
    field === 'projectId' ? projectName(value) : field === 'traceId' ? shorten(value) : value
  const chip = (field: FilterField, raw: string, excluded: string | null): Chip => ({
    field,
    excluded,
    label: FIELD_LABELS[field],
    value: shown(field, raw),
    raw,
  })
  const asked = FILTER_FIELDS.flatMap((field) =>
    valuesOf(filters[field]).map((raw) => chip(field, raw, null)),
  )
  const excluded = exclusionsOf(filters).map(({ field, value }) =>
    chip(field, value, exclusionText({ field, value })),
  )
  return [...receivedChips(filters), ...asked, ...searchChips(filters), ...excluded]
}

function receivedChips(filters: Filters): Chip[] {
  if (!hasReceived(filters)) return []
  const { receivedFrom = '', receivedTo = '' } = filters
  const raw = `${receivedFrom}/${receivedTo}`
  return [
    { field: 'received', excluded: null, label: 'received', value: receivedText(filters), raw },
  ]
}

function searchChips({ actorRole, metadata = [] }: Filters): Chip[] {
  const chips: Chip[] = metadata.flatMap((raw) => {
    const filter = readMetadata(raw)
    if (filter === null) return []
    const { path, value } = filter
    return {
      field: 'metadata',
      excluded: null,
      label: `metadata.${path}`,
      value: value ?? 'exists',
      raw,
    }
  })
  if (actorRole === undefined) return chips
  const role: Chip = {
    field: 'actorRole',
    excluded: null,
    label: 'actor role',
    value: actorRole,
    raw: actorRole,
  }
  return [role, ...chips]
}

/** Distinguishes the chips of a query. */
export function chipKey({ field, excluded, raw }: Chip): string {
  return excluded === null ? `${field}=${raw}` : `not ${excluded}`
}

/** The word "not" marks an excluded value, so that it doesn't depend on styling. */
export function labelOf({ excluded, label }: Chip): string {
  return excluded === null ? label : `not ${label}`
}

export function exclusionsOf({ not = [] }: Pick<Filters, 'not'>): Exclusion[] {
  return not.flatMap((text) => readExclusion(text) ?? [])
}

export function mayExclude({ not = [] }: Pick<Filters, 'not'>): boolean {
  return not.length < EXCLUSIONS_MAX
}

/** Whether the field can have one more value. A new trace replaces the one before. */
export function mayAdd(filters: Filters, field: FilterField): boolean {
  return field === 'traceId' || (filters[field] ?? []).length < VALUES_PER_FIELD_MAX
}

/** Removes the chip from the URL. */
export function removePatch({ field, excluded, raw }: Chip): SearchPatch {
  if (excluded !== null) return { include: excluded }
  if (field === 'metadata') return { removeMetadata: raw }
  if (field === 'received') return { receivedFrom: null, receivedTo: null }
  return isExcludable(field) ? { remove: exclusionText({ field, value: raw }) } : { [field]: null }
}

export function clearPatch(): SearchPatch {
  const patch: SearchPatch = {
    receivedFrom: null,
    receivedTo: null,
    text: null,
    not: null,
    metadata: null,
    actorRole: null,
    view: null,
  }
  for (const field of FILTER_FIELDS) patch[field] = null
  return patch
}
