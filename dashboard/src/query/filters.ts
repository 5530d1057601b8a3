import { shorten } from '../parts/shorten.ts'
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
} from '../pages/explorer/explorer-search.ts'
import { FILTER_FIELDS, type FilterField } from './filter-fields.ts'

/** The query without the period. An event must have one of the values of each field. */
export type Filters = Partial<Record<ExcludableField, string[]>> &
  Partial<Record<'traceId' | 'text' | 'workspaceId', string>> & {
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
  /** The value as shown. */
  value: string
  /** The value in the URL. */
  raw: string
}

export const TRACE_ID = /^[0-9A-Fa-f]{32}$/

export function filtersOf(search: ExplorerSearch, chosenWorkspaceId: string | null): Filters {
  const filters: Filters = {}
  for (const field of EXCLUDABLE_FIELDS) {
    const values = valuesOf(search[field])
    if (values.length > 0) filters[field] = [...values]
  }
  for (const field of ['traceId', 'text'] as const) {
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
  return [...asked, ...excluded]
}

/** Distinguishes the chips of a query. */
export function chipKey({ field, excluded, raw }: Chip): string {
  return excluded === null ? `${field}=${raw}` : `not ${excluded}`
}

/** What the chips mean, one text per field, such as "category: auth or billing". */
export function chipTexts(chips: readonly Chip[]): string[] {
  const byLabel = Map.groupBy(chips, labelOf)
  return [...byLabel].map(([label, same]) => {
    const values = same.map(({ value }) => value)
    return `${label}: ${values.join(same[0]?.excluded === null ? ' or ' : ', ')}`
  })
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

/** Whether the field can have one more value. A new trace replaces the one before. */
export function mayAdd(filters: Filters, field: FilterField): boolean {
  return field === 'traceId' || (filters[field] ?? []).length < VALUES_PER_FIELD_MAX
}

/** Removes the chip from the URL. */
export function removePatch({ field, excluded, raw }: Chip): SearchPatch {
  if (excluded !== null) return { include: excluded }
  return isExcludable(field) ? { remove: exclusionText({ field, value: raw }) } : { [field]: null }
}

export function withoutChip(
  { not = [], ...filters }: Filters,
  { field, excluded, raw }: Chip,
): Filters {
  const others: Filters = filters
  if (excluded === null) {
    const left = isExcludable(field) ? valuesOf(others[field]).filter((one) => one !== raw) : []
    if (isExcludable(field) && left.length > 0) others[field] = left
    else delete others[field]
  }
  const kept = not.filter((text) => text !== excluded)
  return kept.length === 0 ? others : { ...others, not: kept }
}

/** The filters as a body has them: several values of a field are in `anyOf`. */
export function bodyFilters(filters: Filters) {
  const { traceId, text, workspaceId, not } = filters
  const single: Partial<Record<ExcludableField, string>> = {}
  const anyOf: string[] = []
  for (const field of EXCLUDABLE_FIELDS) {
    const [first, ...others] = filters[field] ?? []
    if (first === undefined) continue
    if (others.length === 0) single[field] = first
    else anyOf.push(...[first, ...others].map((value) => exclusionText({ field, value })))
  }
  return {
    ...single,
    ...(traceId !== undefined && { traceId }),
    ...(text !== undefined && { text }),
    ...(workspaceId !== undefined && { workspaceId }),
    ...(anyOf.length > 0 && { anyOf }),
    ...(not !== undefined && { not }),
  }
}

/** The values of a field in the `anyOf` of a body. */
export function listedValues(
  { anyOf = [] }: { anyOf?: readonly string[] },
  field: string,
): string[] {
  return anyOf.flatMap((text) => {
    const listed = readExclusion(text)
    return listed?.field === field ? [listed.value] : []
  })
}

export function clearPatch(): SearchPatch {
  const patch: SearchPatch = { text: null, not: null, view: null }
  for (const field of FILTER_FIELDS) patch[field] = null
  return patch
}
