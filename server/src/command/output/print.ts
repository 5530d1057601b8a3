import { printable, printableJson } from '../../platform/terminal/printable.ts'

/*
 * All output of commands. Texts of the database, the archive, a backup or the network can contain line breaks and
 * escape sequences, which could hide a line or add a false one.
 */

/** Prints lines without their line breaks, which are added. Everything else that isn't printable is escaped. */
export function printLines(...lines: readonly string[]): void {
  printEscaped(linesOf(lines))
}

/** Prints lines that aren't the result of the command. */
export function printNotes(...lines: readonly string[]): void {
  process.stderr.write(linesOf(lines))
}

/** Prints one line of JSON per value. */
export function printJson(...values: readonly unknown[]): void {
  printEscaped(values.map((value) => `${printableJson(value)}\n`).join(''))
}

/** Only for text whose parts are escaped already. Returns false if the reader is slower than the command. */
export function printEscaped(text: string): boolean {
  // A full disk refuses even an empty write.
  return text === '' || process.stdout.write(text)
}

function linesOf(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join('')
}
