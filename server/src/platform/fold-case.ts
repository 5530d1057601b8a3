/**
 * Lowercases only A to Z, as `lower(… collate "C")` does. If the database and the program folded other
 * characters differently, they would find different events.
 */
export function foldCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
