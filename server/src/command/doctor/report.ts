import { printable } from '../../platform/terminal/printable.ts'
import { printEscaped, printJson, printLines } from '../output/print.ts'
import { type Finding, finding } from './check.ts'

const NAME_WIDTH = 17
const STATUS_WIDTH = 9
const INDENT = ' '.repeat(STATUS_WIDTH + NAME_WIDTH)

/** Prints each finding as soon as it is known, or all of them as one line of JSON. */
export class Report {
  readonly #isJson: boolean
  readonly #checks: ({ name: string } & Finding)[] = []

  constructor(isJson: boolean) {
    this.#isJson = isJson
  }

  add(name: string, found: Finding): void {
    this.#checks.push({ name, ...found })
    if (!this.#isJson) printEscaped(textOf(name, found))
  }

  /** In the text, checks that could not run for the same reason are one line. */
  skip(names: readonly string[], reason: string): void {
    const found = finding.skipped(reason)
    this.#checks.push(...names.map((name) => ({ name, ...found })))
    const all = { ...found, message: `${reason} Not checked: ${names.join(', ')}.` }
    if (!this.#isJson) printEscaped(textOf(`${names.length} checks`, all))
  }

  /** Sets the exit code. */
  finish(): void {
    const count = (status: Finding['status']) =>
      this.#checks.filter((check) => check.status === status).length
    const failed = count('failed')
    if (failed > 0) process.exitCode = 1
    if (this.#isJson) {
      printJson({ ok: failed === 0, checks: this.#checks })
      return
    }
    const warnings = count('warning')
    printLines(
      '',
      `${failed} failed, ${warnings} ${warnings === 1 ? 'warning' : 'warnings'}, ${count('ok')} ok, ${count('skipped')} skipped.`,
    )
  }
}

function textOf(name: string, { status, message, advice }: Finding): string {
  const [first = '', ...others] = message.split('\n').map(printable)
  const head = `${status.padEnd(STATUS_WIDTH)}${name.padEnd(NAME_WIDTH)}${first}\n`
  const more = others.map((line) => `${INDENT}${line}\n`).join('')
  return head + more + (advice === null ? '' : `${INDENT}→ ${printable(advice)}\n`)
}
