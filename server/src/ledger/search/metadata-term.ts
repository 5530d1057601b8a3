import { canonicalString } from '../canonical.ts'
import { foldCase } from '../../platform/fold-case.ts'

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

/** A term, and what is left of its path below a node: `city` of `user.city` below `user`, and null at its end. */
type Sought = { term: MetadataTerm; path: string | null; values: ReadonlySet<string> | null }

/** Whether an event's metadata has what every term requires. */
export function hasTerms(metadata: string | null, terms: readonly MetadataTerm[]): boolean {
  if (metadata === null) return false
  // Parsing costs more than finding a text, and most events don't contain it.
  if (!terms.every((term) => mayHaveTerm(metadata, term))) return false
  const missing = new Set(terms)
  const nodes: unknown[] = [JSON.parse(metadata)]
  const soughtAt: (readonly Sought[])[] = [
    terms.map((term) => ({ term, path: term.path, values: term.values && new Set(term.values) })),
  ]
  // Visits only nodes on the way to a path.
  while (nodes.length > 0 && missing.size > 0) {
    const node = nodes.pop()
    const sought = soughtAt.pop() ?? []
    if (Array.isArray(node)) {
      for (const item of node) {
        if (typeof item === 'object' && item !== null) {
          nodes.push(item)
          soughtAt.push(sought)
        } else dropFulfilledTerms(missing, sought, item)
      }
    } else if (typeof node === 'object' && node !== null) {
      for (const [key, value] of Object.entries(node)) {
        const below = sought.flatMap((one) => stepInto(one, key))
        if (below.length === 0) continue
        dropFulfilledTerms(missing, below, value)
        nodes.push(value)
        soughtAt.push(below)
      }
    }
  }
  return missing.size === 0
}

/** What is sought below a key: the term itself if the key ends its path, and the rest of its path. */
function stepInto(sought: Sought, key: string): Sought[] {
  const { path } = sought
  if (path === null) return []
  if (path === key) return [{ ...sought, path: null }]
  return path.startsWith(key) && path[key.length] === '.'
    ? [{ ...sought, path: path.slice(key.length + 1) }]
    : []
}

/** Drops the terms that a node fulfills. Any node does if no values are required. */
function dropFulfilledTerms(
  missing: Set<MetadataTerm>,
  sought: readonly Sought[],
  node: unknown,
): void {
  const text = typeof node !== 'object' || node === null ? String(node) : null
  for (const { term, path, values } of sought) {
    if (path !== null) continue
    if (values === null || (text !== null && values.has(text))) missing.delete(term)
  }
}

function mayHaveTerm(metadata: string, { path, values }: MetadataTerm): boolean {
  if (!metadata.includes(keyEnd(path))) return false
  return values === null || values.some((value) => metadata.includes(innerText(value)))
}

/** Whether a value in an event's metadata equals the text. The letters A to Z match either case. */
export function hasMetadataValue(metadata: string | null, text: string): boolean {
  if (metadata === null) return false
  const wanted = foldCase(text)
  if (!foldCase(metadata).includes(innerText(wanted))) return false
  const nodes: unknown[] = [JSON.parse(metadata)]
  while (nodes.length > 0) {
    const node = nodes.pop()
    if (typeof node === 'object' && node !== null) {
      for (const child of Object.values(node)) nodes.push(child)
    } else {
      const value = String(node)
      if (value.length === wanted.length && foldCase(value) === wanted) return true
    }
  }
  return false
}

/** The text of a value in canonical JSON, without quotes. Every metadata with the value contains it. */
export function innerText(value: string): string {
  return canonicalString(value).slice(1, -1)
}

/** The end of the innermost key of a path, with the colon. Every metadata with the path contains it. */
export function keyEnd(path: string): string {
  return `${innerText(path.slice(path.lastIndexOf('.') + 1))}":`
}
