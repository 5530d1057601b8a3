import { domainToASCII, domainToUnicode } from 'node:url'

/**
 * Exactly one address. Mail programs parse `<`, `>`, `,`, `;`, `:`, double quotes and comments as syntax,
 * so the mail could go elsewhere, and a `/` makes an address look like a link. Letters of all scripts are
 * allowed, including in the domain.
 */
const ADDRESS = /^[^\s\p{C}@<>()[\],;:"\\/]{1,64}@[^\s\p{C}@<>()[\],;:"\\/]{1,255}$/u

export function isMailAddress(text: string): boolean {
  return ADDRESS.test(text) && isUsualSpelling(text.slice(text.indexOf('@') + 1))
}

/** One mailbox must not have several accounts, so a final dot, `xn--` and full-width letters are refused. */
function isUsualSpelling(domain: string): boolean {
  return !domain.endsWith('.') && domainToUnicode(domainToASCII(domain)) === domain.toLowerCase()
}

/** Matches names longer than 80 characters and captures the first 79. */
const LONG_NAME = /^(.{79}).{2,}$/su

/**
 * Makes a user-chosen name safe for mail to other people: in quotes, on one line, and without anything
 * that a mail program turns into a link.
 */
export function quoteNameForMail(name: string): string {
  const line = onOneLine(name).replaceAll('"', "'").replace(LONG_NAME, '$1…')
  return `"${breakLinks(line)}"`
}

/** Makes a sentence with user-chosen names safe for mail: on one line, and without links. */
export function sentenceForMail(sentence: string): string {
  return breakLinks(onOneLine(sentence))
}

function onOneLine(text: string): string {
  return text.replaceAll(/[\s\p{C}]+/gu, ' ').trim()
}

/** Numbers keep their decimal point, and times their colon. */
function breakLinks(text: string): string {
  return text.replaceAll(/[.。．｡:/@](?=\S)(?!(?<=\d.)\d)/gu, '$& ')
}
