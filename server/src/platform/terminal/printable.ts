/**
 * Characters of untrusted text that could move the cursor, change the screen or reorder the line: control
 * characters, line separators, bidirectional formatting, and halves of surrogate pairs.
 */
const UNSAFE = /[\p{Cc}\p{Cs}\u061C\u200E\u200F\u2028\u2029\u202A-\u202E\u2066-\u2069\uFEFF]/gu
/** Drawn by terminals in two columns: emoji, and the wide characters of East Asia. */
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]/u
const WITHOUT_WIDTH = /[\p{Mn}\p{Me}\p{Cf}]/u
const ELLIPSIS = '…'

/** The text as it is safe to print in a terminal. */
export function printable(text: string): string {
  return text.replaceAll(UNSAFE, escapeCharacter)
}

/** One line of JSON that is safe to print, and has the same value: a string can contain these escapes. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNSAFE, escapeCharacter)
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** How many columns of the terminal the text takes. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of text) width += characterWidth(character)
  return width
}

function characterWidth(character: string): number {
  if (character >= ' ' && character <= '~') return 1
  if (WITHOUT_WIDTH.test(character)) return 0
  return WIDE.test(character) ? 2 : 1
}

/** At most `width` columns of the text. If it is longer, it ends with an ellipsis. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = ''
  let left = width - 1
  for (const character of text) {
    left -= characterWidth(character)
    if (left < 0) break
    kept += character
  }
  return kept + ELLIPSIS
}
