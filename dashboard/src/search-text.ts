/** What stands behind the question mark of an address, each name with its text, or with several. */
export type SearchTexts = Record<string, string | string[]>

/**
 * Texts stand in an address as they are: `live=1`, `text=42`. An address may be from a time when they
 * stood as JSON (`live=%221%22`), so what looks like a text or a list in JSON is read as one.
 */
export function readSearchText(text: string): SearchTexts {
  const read: SearchTexts = {}
  const parameters = new URLSearchParams(text)
  for (const name of new Set(parameters.keys())) {
    const values = parameters.getAll(name).flatMap((value) => decode(value) ?? value)
    const [first] = values
    if (first !== undefined) read[name] = values.length === 1 ? first : values
  }
  return read
}

/** The other way round; nothing for what is not set. A text that would be taken for JSON is written as such. */
export function writeSearchText(search: Record<string, unknown>): string {
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

/** Null for a plain text. */
function decode(value: string): string | string[] | null {
  if (!value.startsWith('"') && !value.startsWith('[')) return null
  try {
    const decoded: unknown = JSON.parse(value)
    if (typeof decoded === 'string') return decoded
    return Array.isArray(decoded) ? decoded.map(String) : null
  } catch {
    return null
  }
}
