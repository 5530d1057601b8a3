import { canonicalString } from '../canonical.ts'
import { foldCase } from '../fold-case.ts'

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

/** Called for each node below the metadata. The value is null for an object or an array. */
type Visit = (path: string, value: string | null) => void

const NODES_PER_STEP = 500

/** Visits every node of an event's metadata. Yields about every 500 nodes. */
export function* visitNodes(metadata: string, visit: Visit): Generator<void, void, void> {
  const paths: (string | null)[] = [null]
  const nodes: unknown[] = [JSON.parse(metadata)]
  let count = 0
  while (nodes.length > 0) {
    const node = nodes.pop()
    const path = paths.pop() ?? null
    count += 1
    if (count % NODES_PER_STEP === 0) yield
    if (typeof node !== 'object' || node === null) {
      if (path !== null) visit(path, String(node))
      continue
    }
    if (path !== null) visit(path, null)
    if (Array.isArray(node)) {
      for (const item of node) {
        nodes.push(item)
        paths.push(path)
      }
      continue
    }
    for (const [key, value] of Object.entries(node)) {
      nodes.push(value)
      paths.push(path === null ? key : `${path}.${key}`)
    }
  }
}

/** Whether an event's metadata has what every term requires. */
export function hasTerms(metadata: string | null, terms: readonly MetadataTerm[]): boolean {
  if (metadata === null) return false
  // Parsing costs more than finding a text, and most events don't contain it.
  if (!terms.every((term) => mayHaveTerm(metadata, term))) return false
  const missing = new Set(terms)
  for (const _step of visitNodes(metadata, (path, value) => {
    for (const term of missing) {
      const isMatch = term.values === null || (value !== null && term.values.includes(value))
      if (term.path === path && isMatch) missing.delete(term)
    }
  }));
  return missing.size === 0
}

function mayHaveTerm(metadata: string, { path, values }: MetadataTerm): boolean {
  if (!metadata.includes(keyEnd(path))) return false
  return values === null || values.some((value) => metadata.includes(innerText(value)))
}

/** Whether a value in an event's metadata equals the text. The letters A to Z match either case. */
export function hasMetadataValue(metadata: string | null, text: string): boolean {
  if (metadata === null) return false
  const wanted = foldCase(text)
  const folded = foldCase(metadata)
  if (!folded.includes(innerText(wanted))) return false
  let isFound = false
  // Escapes have no upper-case letters, so the folded text is JSON with folded values.
  for (const _step of visitNodes(folded, (_path, value) => {
    if (value === wanted) isFound = true
  }));
  return isFound
}

/** The text of a value in canonical JSON, without quotes. Every metadata with the value contains it. */
export function innerText(value: string): string {
  return canonicalString(value).slice(1, -1)
}

/** The end of the innermost key of a path, with the colon. Every metadata with the path contains it. */
export function keyEnd(path: string): string {
  return `${innerText(path.slice(path.lastIndexOf('.') + 1))}":`
}
