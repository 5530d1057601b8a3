const SIGNS = '=+-@＝＋－＠'
const BLANKS = ' \u00a0\u1680\u202f\u205f\u3000\ufeff'

/** The CSV cell for a text, computed character by character from the rule in docs/exports.md. */
export function guardedCell(text: string): string {
  let cell = text !== '' && "\t\r\n'".includes(text.charAt(0)) ? "'" : ''
  let mayStartFormula = true
  for (const character of text) {
    if (mayStartFormula && SIGNS.includes(character)) cell += "'"
    cell += character
    const isSeparator = character === ';' || character === '\t'
    mayStartFormula = isSeparator || (mayStartFormula && isBlank(character))
  }
  return cell
}

function isBlank(character: string): boolean {
  return BLANKS.includes(character) || (character >= '\u2000' && character <= '\u200b')
}
