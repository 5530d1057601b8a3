import { canonicalString } from '../canonical.ts'

/**
 * A condition on the metadata of an event. A path is the keys that lead to a value, joined with dots, so a key
 * that contains a dot has the same path as two nested keys. The items of an array have the path of the array.
 * Values are compared as text: a number or a literal has its JSON text, such as `42`, `true` or `null`.
 */
export type MetadataTerm = {
  path: string
  /** An event must have one of these values at the path. Null: any value, object or array. */
  values: readonly string[] | null
}

/** The maximum number of paths per filter, and of values per path. */
export const METADATA_PATHS_MAX = 10
export const METADATA_VALUES_MAX = 20
/** In code points, as schemas count them. */
export const METADATA_PATH_LENGTH_MAX = 256
export const METADATA_VALUE_LENGTH_MAX = 1_024

/** Sorts and deduplicates terms, so that equivalent filters are equal. Returns null if there are none. */
export function orderTerms(given: readonly MetadataTerm[]): readonly MetadataTerm[] | null {
  if (given.length === 0) return null
  const ordered = given.map(({ path, values }) => ({
    path,
    values: values && [...new Set(values)].toSorted(),
  }))
  const unique = new Map(ordered.map((term) => [termText(term), term]))
  return [...unique].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, term]) => term)
}

function termText({ path, values }: MetadataTerm): string {
  return JSON.stringify([path, values])
}

/** The text of a value in canonical JSON, without quotes. Every metadata with the value contains it. */
export function innerText(value: string): string {
  return canonicalString(value).slice(1, -1)
}

/** The end of the innermost key of a path, with the colon. Every metadata with the path contains it. */
export function keyEnd(path: string): string {
  return `${innerText(path.slice(path.lastIndexOf('.') + 1))}":`
}
