const BACKSLASH = '\\'

/** A text of `{ "<name>": [ … ] }` taken apart: `frame` is the same text with the array empty. */
export type SlicedItems = { items: string[]; frame: string }

/**
 * The texts of the items of the first array inside an object, for a text that `JSON.parse` accepts.
 * Whoever must judge items one by one needs them as they were written: parsing has forgotten a
 * repeated key and rounded a number. The frame is left for the caller to judge, so that nothing
 * beside the items goes unseen.
 */
export function sliceItems(text: string): SlicedItems {
  const items: string[] = []
  let depth = 0
  let arrayStart = -1
  let itemStart = -1
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at)
    if (char === '"') {
      at = endOfString(text, at)
    } else if (char === '{' || char === '[') {
      depth += 1
      if (depth === 2 && char === '[' && arrayStart === -1) arrayStart = itemStart = at + 1
    } else if (char === '}' || char === ']') {
      depth -= 1
      if (arrayStart !== -1 && depth === 1) {
        const last = text.slice(itemStart, at)
        if (items.length > 0 || last.trim() !== '') items.push(last)
        return { items, frame: text.slice(0, arrayStart) + text.slice(at) }
      }
    } else if (char === ',' && depth === 2 && arrayStart !== -1) {
      items.push(text.slice(itemStart, at))
      itemStart = at + 1
    }
  }
  return { items, frame: text }
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
