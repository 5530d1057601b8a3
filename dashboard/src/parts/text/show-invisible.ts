/**
 * Characters that show nothing but change the order or the equality of texts. Not tabs and line breaks, and not
 * joiners between letters or emoji, where they are part of ordinary texts.
 */
const INVISIBLE =
  /(?![\t\n\r\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]|(?<![\p{L}\p{M}\p{Extended_Pictographic}\ufe0f])[\u200c\u200d]|[\u200c\u200d](?![\p{L}\p{M}\p{Extended_Pictographic}])/gu

/**
 * Replaces invisible characters with their code points, such as "invoice⟨U+202E⟩fdp". Otherwise a client could send
 * an event that reads like another one, with a reversed text or a name that only looks the same.
 */
export function showInvisible(text: string): string {
  return text.replace(INVISIBLE, (found) => {
    const code = found.codePointAt(0) ?? 0
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
  })
}
