import { parseJson } from '../../sdk/src/client/parse-json.ts'

/** The search parameters of a URL, each with one or several values. */
type SearchParams = Record<string, string | string[]>

/**
 * Reads plain values, such as `live=1` and `text=42`. Old links contain JSON (`live=%221%22`), so values
 * that look like a JSON string or array are decoded.
 */
export function parseSearchParams(text: string): SearchParams {
  const read: SearchParams = {}
  const parameters = new URLSearchParams(text)
  for (const name of new Set(parameters.keys())) {
    const values = parameters.getAll(name).flatMap((value) => decode(value) ?? value)
    const [first] = values
    if (first !== undefined) read[name] = values.length === 1 ? first : values
  }
  return read
}

/** The inverse. Skips unset values, and encodes a value as JSON if it would be mistaken for JSON. */
export function formatSearchParams(search: Record<string, unknown>): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(search)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one === undefined || one === null) continue
      const plain = String(one)
      parameters.append(name, decode(plain) === null ? plain : JSON.stringify(plain))
    }
  }
  const text = parameters.toString()
  return text === '' ? '' : `?${text}`
}

/** Null for a plain value. */
function decode(value: string): string | string[] | null {
  if (!value.startsWith('"') && !value.startsWith('[')) return null
  try {
    const decoded: unknown = parseJson(value)
    if (typeof decoded === 'string') return decoded
    return Array.isArray(decoded) ? decoded.map(String) : null
  } catch {
    return null
  }
}
