const BACKSLASH = '\\'

/**
 * The texts of the items of the first array inside an object, for a text that `JSON.parse` accepts.
 * Whoever must judge items one by one needs them as they were written: parsing has forgotten a
 * repeated key and rounded a number.
 */
export function sliceItems(text: string): string[] {
  const items: string[] = []
  let depth = 0
  let start = -1
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (char === '"') {
      at = endOfString(text, at)
    } else if (char === '{' || char === '[') {
      depth += 1
      if (depth === 2 && char === '[' && start === -1) start = at + 1
    } else if (char === '}' || char === ']') {
      depth -= 1
      if (start !== -1 && depth === 1) {
        items.push(text.slice(start, at))
        return items
      }
    } else if (char === ',' && depth === 2 && start !== -1) {
      items.push(text.slice(start, at))
      start = at + 1
    }
  }
  return items
}

/** The place of the closing quote. */
function endOfString(text: string, opening: number): number {
  for (let at = opening + 1; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (char === BACKSLASH) at += 1
    else if (char === '"') return at
  }
  return text.length
}
