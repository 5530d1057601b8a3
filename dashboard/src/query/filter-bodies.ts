import { valuesOf } from './explorer-search.ts'
import {
  EXCLUDABLE_FIELDS,
  type ExcludableField,
  exclusionText,
  isExcludable,
  readExclusion,
} from './exclusions.ts'
import type { FilterField } from './filter-fields.ts'
import { type Chip, FIELD_LABELS, type Filters, labelOf } from './filters.ts'
import { metadataText, readMetadata } from './metadata.ts'
import { receivedRangeOf } from './received.ts'

/* What views and exports do with filters. The explorer loads it when it opens one of their dialogs. */

/** The filters as a body has them: several values of a field are in `anyOf`. */
export function bodyFilters(filters: Filters) {
  const { traceId, actorRole, metadata, text, workspaceId, not } = filters
  const single: Partial<Record<ExcludableField, string>> = {}
  const anyOf: string[] = []
  for (const field of EXCLUDABLE_FIELDS) {
    const [first, ...others] = filters[field] ?? []
    if (first === undefined) continue
    if (others.length === 0) single[field] = first
    else anyOf.push(...[first, ...others].map((value) => exclusionText({ field, value })))
  }
  return {
    ...receivedRangeOf(filters),
    ...single,
    ...(traceId !== undefined && { traceId }),
    ...(actorRole !== undefined && { actorRole }),
    ...metadataBody(metadata),
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

/** The filters by metadata as a body has them. */
export function metadataBody(texts: readonly string[] = []) {
  const metadata: Record<string, string[]> = {}
  const hasMetadata: string[] = []
  for (const { path, value } of texts.flatMap((text) => readMetadata(text) ?? [])) {
    if (value === null) hasMetadata.push(path)
    else metadata[path] = [...(metadata[path] ?? []), value]
  }
  return {
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(hasMetadata.length > 0 && { hasMetadata }),
  }
}

/** The inverse. */
export function metadataTexts({
  metadata = {},
  hasMetadata = [],
}: {
  metadata?: Record<string, string | readonly string[]>
  hasMetadata?: readonly string[]
}): string[] {
  const valued = Object.entries(metadata).flatMap(([path, values]) =>
    [values].flat().map((value) => metadataText({ path, value })),
  )
  return [...valued, ...hasMetadata.map((path) => metadataText({ path, value: null }))]
}

/** What the chips mean, one text per field, such as "category: auth or billing". */
export function chipTexts(chips: readonly Chip[]): string[] {
  const byLabel = Map.groupBy(chips, labelOf)
  return [...byLabel].map(([label, same]) => {
    const values = same.map(({ value }) => value)
    return `${label}: ${values.join(same[0]?.excluded === null ? ' or ' : ', ')}`
  })
}

export function exclusionLabel(field: FilterField): string {
  return `not ${FIELD_LABELS[field]}`
}

export function withoutChip(
  { not = [], ...filters }: Filters,
  { field, excluded, raw }: Chip,
): Filters {
  const others: Filters = filters
  if (field === 'metadata') {
    others.metadata = (others.metadata ?? []).filter((text) => text !== raw)
  } else if (field === 'received') {
    delete others.receivedFrom
    delete others.receivedTo
  } else if (excluded === null) {
    const left = isExcludable(field) ? valuesOf(others[field]).filter((one) => one !== raw) : []
    if (isExcludable(field) && left.length > 0) others[field] = left
    else delete others[field]
  }
  const kept = not.filter((text) => text !== excluded)
  return kept.length === 0 ? others : { ...others, not: kept }
}
