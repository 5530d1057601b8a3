import {
  EXCLUDABLE_FIELDS,
  type ExcludableField,
  type Exclusion,
  EXCLUSIONS_MAX,
  exclusionText,
  readExclusion,
  VALUES_PER_FIELD_MAX,
} from './exclusions.ts'
import { readMetadataTexts } from './metadata.ts'

const TEXT_FIELDS = [
  'traceId',
  'actorRole',
  'workspaceId',
  'range',
  'from',
  'to',
  'receivedFrom',
  'receivedTo',
  'text',
  'sort',
  'by',
  'columns',
  'live',
  'event',
  'view',
] as const
type TextField = (typeof TEXT_FIELDS)[number]

/** The query in the explorer's URL, so that a link reproduces the page. */
export type ExplorerSearch = Partial<Record<TextField, string>> &
  Partial<Record<ExcludableField, string | readonly string[]>> & {
    /** Excluded values, such as `category:billing`. */
    not?: readonly string[]
    /** Filters by metadata, such as `ip=192.0.2.1`. */
    metadata?: readonly string[]
  }

/** The `workspaceId` for all workspaces that the member who opens the link sees. */
export const ALL_WORKSPACES = 'all'

/** Ignores unknown parameters. Numbers and booleans become strings. */
export function readExplorerSearch(search: Record<string, unknown>): ExplorerSearch {
  const read: ExplorerSearch = {}
  for (const field of EXCLUDABLE_FIELDS) {
    const values = [...new Set([search[field]].flat().flatMap(readText))]
    const [first, ...others] = values
    if (first === undefined) continue
    read[field] = others.length === 0 ? first : values.slice(0, VALUES_PER_FIELD_MAX)
  }
  for (const field of TEXT_FIELDS) {
    const [text] = readText(search[field])
    if (text !== undefined) read[field] = text
  }
  const not = readExclusions(search['not'])
  const metadata = readMetadataTexts(search['metadata'])
  return {
    ...read,
    ...(not.length > 0 && { not }),
    ...(metadata.length > 0 && { metadata }),
  }
}

/** Empty if the value isn't a text. */
function readText(value: unknown): string[] {
  if (typeof value === 'number' || typeof value === 'boolean') return [String(value)]
  return typeof value === 'string' && value !== '' ? [value] : []
}

/** Reads one or several values, up to the limit of the service. */
function readExclusions(value: unknown): string[] {
  const texts = [value].flat().filter((text) => typeof text === 'string')
  return [...new Set(texts)].filter((text) => readExclusion(text) !== null).slice(0, EXCLUSIONS_MAX)
}

/** The values of a filter: none, one or several. */
export function valuesOf(value: string | readonly string[] | undefined): readonly string[] {
  return [value ?? []].flat()
}

/**
 * Changes to the query. Null removes a field. `add` and `remove` change single values of fields that can
 * have several, and `addMetadata` and `removeMetadata` those of the metadata. `exclude` adds one excluded value
 * and `include` removes one. The caller needn't know the other values.
 */
export type SearchPatch = Partial<
  Record<keyof ExplorerSearch | 'exclude' | 'include' | 'remove', string | readonly string[] | null>
> & { add?: readonly string[]; addMetadata?: string; removeMetadata?: string }

/** For "Filter by this": adds to the values that a field already has, instead of replacing them. */
export function addPatch(patch: SearchPatch): SearchPatch {
  const rest = { ...patch }
  const add = EXCLUDABLE_FIELDS.flatMap((field) => {
    const value = rest[field]
    if (typeof value !== 'string') return []
    delete rest[field]
    return [exclusionText({ field, value })]
  })
  return { ...rest, add }
}

export function patchSearch(
  search: ExplorerSearch,
  { add = [], remove, exclude, include, addMetadata, removeMetadata, ...patch }: SearchPatch,
): ExplorerSearch {
  const next = readExplorerSearch({ ...search, ...patch })
  const metadata = [...(next.metadata ?? []), addMetadata].filter((text) => text !== removeMetadata)
  const added = add.flatMap((text) => readExclusion(text) ?? [])
  for (const { field, value } of added) next[field] = [...valuesOf(next[field]), value]
  const excluded = typeof exclude === 'string' ? readExclusion(exclude) : null
  // Filtering by a field removes its exclusions, and excluding a value removes the filter by that value.
  const not = (next.not ?? []).filter((text) => {
    const field = readExclusion(text)?.field
    const isSet = field !== undefined && typeof patch[field] === 'string' && patch.not === undefined
    return text !== include && !isSet && !added.some((one) => one.field === field)
  })
  if (excluded && not.length < EXCLUSIONS_MAX) {
    not.push(exclusionText(excluded))
    removeValue(next, excluded)
  }
  const removed = typeof remove === 'string' ? readExclusion(remove) : null
  if (removed) removeValue(next, removed)
  return readExplorerSearch({ ...next, not, metadata })
}

function removeValue(search: ExplorerSearch, { field, value }: Exclusion): void {
  search[field] = valuesOf(search[field]).filter((other) => other !== value)
}
