/**
 * Filters by metadata as the URL has them: `path=value`, or a path alone for events that have something there.
 * The path is percent-encoded, because it can contain an equals sign.
 */
export type MetadataFilter = { path: string; value: string | null }

/** The limits of the service. */
const PATHS_MAX = 10
const VALUES_PER_PATH_MAX = 20
export const PATH_LENGTH_MAX = 256
export const VALUE_LENGTH_MAX = 1_024
export const METADATA_FULL_TEXT = `You can filter by up to ${PATHS_MAX} metadata keys, with ${VALUES_PER_PATH_MAX} values each. Remove one first.`

export function metadataText({ path, value }: MetadataFilter): string {
  const name = encodeURIComponent(path)
  return value === null ? name : `${name}=${value}`
}

export function readMetadata(text: string): MetadataFilter | null {
  const [name = ''] = text.split('=', 1)
  try {
    const path = decodeURIComponent(name)
    const value = text === name ? null : text.slice(name.length + 1)
    return canFilter(path, value ?? '') ? { path, value } : null
  } catch {
    return null
  }
}

/** Whether the service accepts a filter by this value. */
export function canFilter(path: string, value: string): boolean {
  return path !== '' && path.length <= PATH_LENGTH_MAX && value.length <= VALUE_LENGTH_MAX
}

/** Reads one or several filters, without those beyond the limits. */
export function readMetadataTexts(given: unknown): string[] {
  const counts = new Map<string, number>()
  const texts = [given].flat().filter((text) => typeof text === 'string')
  return [...new Set(texts)].filter((text) => {
    const filter = readMetadata(text)
    if (filter === null) return false
    const count = counts.get(filter.path) ?? 0
    const isFull = count === 0 ? counts.size >= PATHS_MAX : count >= VALUES_PER_PATH_MAX
    if (!isFull) counts.set(filter.path, count + 1)
    return !isFull
  })
}

export function mayAddMetadata(texts: readonly string[] | undefined, text: string): boolean {
  return readMetadataTexts([...(texts ?? []), text]).includes(text)
}

/**
 * Reads what a member types into the search field: `metadata.ip:192.0.2.1`, or `metadata.ip:*` for events that
 * have something there. Undefined if the text isn't a filter, and null while it has no value.
 */
export function readTyped(text: string): string | null | undefined {
  const [, path, given = ''] = /^\s*metadata\.([^:\s]+):(.*)$/.exec(text) ?? []
  if (path === undefined) return undefined
  const value = given.trim()
  if (value === '' || !canFilter(path, value)) return null
  return metadataText({ path, value: value === '*' ? null : value })
}

/** The filters as a query has them: one parameter per path of the metadata. */
export function queryFilters<T extends { metadata?: string[] }>({ metadata = [], ...filters }: T) {
  const query: Record<string, string[]> = {}
  for (const { path, value } of metadata.flatMap((text) => readMetadata(text) ?? [])) {
    const name = value === null ? 'hasMetadata' : `metadata.${path}`
    query[name] = [...(query[name] ?? []), value ?? path]
  }
  return { ...filters, ...query }
}
