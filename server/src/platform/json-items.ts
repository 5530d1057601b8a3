const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

const BYTES_PER_STEP = 65_536

/** A text of `{ "<name>": [ … ] }` split up: `frame` is the same text with an empty array. */
export type SlicedItems = {
  items: Buffer[]
  frame: Buffer
  /** The offset of the array in the frame. */
  arrayStart: number
  /**
   * The number of items, even if the array doesn't end. In that case `items` is
   * empty, and the frame is the text.
   */
  count: number
}

/**
 * Returns the texts of the items in the array `name` of the outermost object. A caller that validates
 * items one by one needs the original text, because parsing drops repeated keys and rounds numbers.
 * Nothing is validated here: the text is valid JSON if and only if the frame and every item are.
 *
 * Null if there are more than `itemsMax` items: a body can hold two million. Yields every few kilobytes.
 */
export function* sliceItems(
  text: Buffer,
  { name, itemsMax }: { name: string; itemsMax: number },
): Generator<void, SlicedItems | null, void> {
  const key = Buffer.from(JSON.stringify(name))
  const items: Buffer[] = []
  let depth = 0
  let isKey = false
  let arrayStart = -1
  let itemStart = -1
  let yieldAt = BYTES_PER_STEP
  for (let at = 0; at < text.length; at += 1) {
    if (at >= yieldAt) {
      yieldAt = at + BYTES_PER_STEP
      yield
    }
    const byte = text[at]
    if (byte === QUOTE) {
      const end = endOfString(text, at)
      if (depth === 1) isKey = end + 1 - at === key.length && key.compare(text, at, end + 1) === 0
      at = end
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1
      if (depth === 2 && byte === OPEN_ARRAY && isKey) arrayStart = itemStart = at + 1
      isKey = false
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth -= 1
      if (arrayStart !== -1 && depth === 1) {
        const last = text.subarray(itemStart, at)
        if (items.length > 0 || !isBlank(last)) items.push(last)
        if (items.length > itemsMax) return null
        const frame = Buffer.concat([text.subarray(0, arrayStart), text.subarray(at)])
        return { items, frame, arrayStart, count: items.length }
      }
    } else if (byte === COMMA) {
      isKey = false
      if (depth !== 2 || arrayStart === -1) continue
      items.push(text.subarray(itemStart, at))
      if (items.length > itemsMax) return null
      itemStart = at + 1
    }
  }
  const count = arrayStart === -1 ? 0 : items.length + 1
  return { items: [], frame: text, arrayStart: text.length, count }
}

/** The position of the closing quote. */
function endOfString(text: Buffer, opening: number): number {
  for (let at = opening + 1; at < text.length; at += 1) {
    const byte = text[at]
    if (byte === BACKSLASH) at += 1
    else if (byte === QUOTE) return at
  }
  return text.length
}

function isBlank(text: Buffer): boolean {
  return text.toString('latin1').trim() === ''
}
