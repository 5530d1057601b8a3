import type { JsonSource } from './json-scanner.ts'

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

const BYTES_PER_STEP = 65_536

/** A body of `{ "<name>": [ … ] }` split up. The frame is the same text with an empty array. */
export type SplitItems = {
  items: JsonSource[]
  frame: JsonSource
  /** The number of items, even if the array doesn't end. In that case, the frame is the whole text. */
  count: number
}

/**
 * Finds the items of the array `name` in the outermost object. A caller that reads items one by one needs
 * the original text, because parsing drops repeated keys and rounds numbers. Nothing is validated here:
 * the text is valid JSON if and only if the frame and every item are.
 *
 * Null if there are more than `itemsMax` items: a body can have two million. Yields every few kilobytes.
 */
export function* splitItems(
  bytes: Buffer,
  { name, itemsMax }: { name: string; itemsMax: number },
): Generator<void, SplitItems | null, void> {
  const key = Buffer.from(JSON.stringify(name))
  const items: JsonSource[] = []
  let depth = 0
  let isKey = false
  let arrayStart = -1
  let itemStart = -1
  let yieldAt = BYTES_PER_STEP
  for (let at = 0; at < bytes.length; at += 1) {
    if (at >= yieldAt) {
      yieldAt = at + BYTES_PER_STEP
      yield
    }
    const byte = bytes[at]
    if (byte === QUOTE) {
      const end = endOfString(bytes, at)
      // Not with `compare`, which throws if the text ends inside the key.
      const isSameLength = end + 1 - at === key.length
      if (depth === 1) isKey = isSameLength && key.equals(bytes.subarray(at, end + 1))
      at = end
    } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1
      if (depth === 2 && byte === OPEN_ARRAY && isKey) arrayStart = itemStart = at + 1
      isKey = false
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      depth -= 1
      if (arrayStart === -1 || depth !== 1) continue
      const last = trimmed(bytes, itemStart, at)
      if (items.length > 0 || last.end > last.start) items.push(last)
      if (items.length > itemsMax) return null
      return { items, frame: frameOf(bytes, arrayStart, at), count: items.length }
    } else if (byte === COMMA) {
      isKey = false
      if (depth !== 2 || arrayStart === -1) continue
      items.push(trimmed(bytes, itemStart, at))
      if (items.length > itemsMax) return null
      itemStart = at + 1
    }
  }
  const count = arrayStart === -1 ? 0 : items.length + 1
  return { items: [], frame: { bytes, start: 0, end: bytes.length }, count }
}

/** The position of the closing quote. */
function endOfString(bytes: Buffer, opening: number): number {
  for (let at = opening + 1; at < bytes.length; at += 1) {
    const byte = bytes[at]
    if (byte === BACKSLASH) at += 1
    else if (byte === QUOTE) return at
  }
  return bytes.length
}

/** An item without the whitespace around it. */
function trimmed(bytes: Buffer, from: number, to: number): JsonSource {
  let start = from
  let end = to
  while (start < end && isWhitespace(bytes[start])) start += 1
  while (start < end && isWhitespace(bytes[end - 1])) end -= 1
  return { bytes, start, end, isItem: true }
}

function isWhitespace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

/** The text without what is between these positions. */
function frameOf(bytes: Buffer, from: number, to: number): JsonSource {
  const frame = Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)])
  return { bytes: frame, start: 0, end: frame.length, gap: { at: from, bytes: to - from } }
}
