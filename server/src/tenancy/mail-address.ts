/**
 * One address and nothing else. A mail program reads `<`, `>`, `,`, `;`, `:`, double quotes and comments
 * as structure, so the mail could go elsewhere; a `/` lets an address look like a link. Letters of all
 * scripts are allowed, also in the domain.
 */
const ADDRESS = /^[^\s\p{C}@<>()[\],;:"\\/]{1,64}@[^\s\p{C}@<>()[\],;:"\\/]{1,255}$/u

export function isMailAddress(text: string): boolean {
  return ADDRESS.test(text)
}

/** More than 80 characters, of which 79 are kept. */
const LONG_NAME = /^(.{79}).{2,}$/su

/**
 * A name that someone else chose, for mail to a stranger: in quotes, on one line, and without
 * anything that a mail program turns into a link.
 */
export function nameInMail(name: string): string {
  const line = name
    .replaceAll(/[\s\p{C}]+/gu, ' ')
    .replaceAll('"', "'")
    .trim()
  return `"${line.replace(LONG_NAME, '$1…').replaceAll(/[.。．｡:/@](?=\S)/g, '$& ')}"`
}
