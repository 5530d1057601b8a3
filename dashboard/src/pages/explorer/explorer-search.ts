import { EXCLUSIONS_MAX, exclusionText, readExclusion } from './exclusions.ts'

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
export type ExplorerSearch = Partial<Record<TextField, string>> & {
  /** Values to leave out, as `category:billing`. */
  not?: readonly string[]
}
type TextField = FilterField | OtherField

/** In place of a workspace: all that whoever opens the link sees. */
export const ALL_WORKSPACES = 'all'

const FIELDS: readonly TextField[] = [...FILTER_FIELDS, ...OTHER_FIELDS]

/** What is not known is left out; a number in the address is a text like any other. */
export function readExplorerSearch(search: Record<string, unknown>): ExplorerSearch {
  const read: ExplorerSearch = {}
  for (const field of FIELDS) {
    const value = search[field]
    if (typeof value === 'string' && value !== '') read[field] = value
    else if (typeof value === 'number' || typeof value === 'boolean') read[field] = String(value)
  }
  const not = readNot(search['not'])
  return not.length === 0 ? read : { ...read, not }
}

/** One or several, however the address was written, and as many as the service takes. */
function readNot(value: unknown): string[] {
  const texts = [value].flat().filter((text) => typeof text === 'string')
  return [...new Set(texts)].filter((text) => readExclusion(text) !== null).slice(0, EXCLUSIONS_MAX)
}

/**
 * Null takes a field away. `exclude` is one more value to leave out, `readmit` one to leave out no
 * longer; whoever asks for either need not know the others.
 */
export type SearchPatch = Partial<
  Record<keyof ExplorerSearch | 'exclude' | 'readmit', string | readonly string[] | null>
>

export function patchSearch(
  search: ExplorerSearch,
  { exclude, readmit, ...patch }: SearchPatch,
): ExplorerSearch {
  const next = readExplorerSearch({ ...search, ...patch })
  const added = typeof exclude === 'string' ? readExclusion(exclude) : null
  // What is asked for cannot be left out as well, and what is left out cannot be asked for.
  const not = (next.not ?? []).filter((text) => {
    const field = readExclusion(text)?.field
    const isAskedFor = field !== undefined && typeof patch[field] === 'string'
    return text !== readmit && (!isAskedFor || patch.not !== undefined)
  })
  if (added && not.length < EXCLUSIONS_MAX) {
    not.push(exclusionText(added))
    if (next[added.field] === added.value) delete next[added.field]
  }
  return readExplorerSearch({ ...next, not })
}
