/**
 * A to Z in lower case and nothing else, which is what `lower(… collate "C")` does: a database and a
 * program that fold by different tables would find different events.
 */
export function foldCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase())
}
