import { EXCLUSIONS_MAX, exclusionText, readExclusion } from '../../query/exclusions.ts'
import { FILTER_FIELDS, type FilterField } from '../../query/filter-fields.ts'

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

/** The query in the explorer's URL, so that a link reproduces the page. */
export type ExplorerSearch = Partial<Record<TextField, string>> & {
  /** Excluded values, such as `category:billing`. */
  not?: readonly string[]
}
type TextField = FilterField | OtherField

/** The `workspaceId` for all workspaces that the member who opens the link sees. */
export const ALL_WORKSPACES = 'all'

const FIELDS: readonly TextField[] = [...FILTER_FIELDS, ...OTHER_FIELDS]

/** Ignores unknown parameters. Numbers and booleans become strings. */
export function readExplorerSearch(search: Record<string, unknown>): ExplorerSearch {
  const read: ExplorerSearch = {}
  for (const field of FIELDS) {
    const value = search[field]
    if (typeof value === 'string' && value !== '') read[field] = value
    else if (typeof value === 'number' || typeof value === 'boolean') read[field] = String(value)
  }
  const not = readExclusions(search['not'])
  return not.length === 0 ? read : { ...read, not }
}

/** Reads one or several values, up to the limit of the service. */
function readExclusions(value: unknown): string[] {
  const texts = [value].flat().filter((text) => typeof text === 'string')
  return [...new Set(texts)].filter((text) => readExclusion(text) !== null).slice(0, EXCLUSIONS_MAX)
}

/**
 * Changes to the query. Null removes a field. `exclude` adds one excluded value and `include` removes
 * one, so that the caller needn't know the others.
 */
export type SearchPatch = Partial<
  Record<keyof ExplorerSearch | 'exclude' | 'include', string | readonly string[] | null>
>

export function patchSearch(
  search: ExplorerSearch,
  { exclude, include, ...patch }: SearchPatch,
): ExplorerSearch {
  const next = readExplorerSearch({ ...search, ...patch })
  const added = typeof exclude === 'string' ? readExclusion(exclude) : null
  // Filtering by a field removes its exclusions, and excluding a value removes the filter by that value.
  const not = (next.not ?? []).filter((text) => {
    const field = readExclusion(text)?.field
    const isFilteredBy = field !== undefined && typeof patch[field] === 'string'
    return text !== include && (!isFilteredBy || patch.not !== undefined)
  })
  if (added && not.length < EXCLUSIONS_MAX) {
    not.push(exclusionText(added))
    if (next[added.field] === added.value) delete next[added.field]
  }
  return readExplorerSearch({ ...next, not })
}
