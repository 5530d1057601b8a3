import { once } from 'node:events'
import { printableJson } from '../../platform/terminal/printable.ts'
import { printEscaped, printNotes } from '../output/print.ts'
import { type Column, formatFields, Table } from '../output/table.ts'

/** The results of a command on standard output, and its remarks on standard error. */
export class ClientOutput {
  readonly isJson: boolean
  readonly #signal: AbortSignal
  #isClosed = false

  constructor({ isJson, signal }: { isJson: boolean; signal: AbortSignal }) {
    this.isJson = isJson
    this.#signal = signal
  }

  /** Whether nothing more can be printed, for example because `head` has read enough. */
  get isClosed(): boolean {
    return this.#isClosed
  }

  onClosed(call: () => void): void {
    process.stdout.once('error', () => {
      this.#isClosed = true
      call()
    })
  }

  /** Prints rows as they arrive: a line of JSON each, or lines of one table. */
  rows<Row>(columns: readonly Column<Row>[]): (rows: readonly Row[]) => Promise<void> {
    const table = new Table(columns, { widthMax: terminalWidth() })
    return async (rows) => {
      const text = this.isJson
        ? rows.map((row) => `${printableJson(row)}\n`).join('')
        : table.format(rows)
      await this.#print(text)
    }
  }

  /** Prints one item: a line of JSON, or its fields. */
  async item(value: object, fields: readonly (readonly [string, string])[]): Promise<void> {
    await this.#print(this.isJson ? `${printableJson(value)}\n` : formatFields(fields))
  }

  /** Prints a sentence that is not a result. */
  note(sentence: string): void {
    printNotes(sentence)
  }

  /** Waits until the reader has room, so that a long list needs little memory. */
  async #print(text: string): Promise<void> {
    if (printEscaped(text)) return
    await once(process.stdout, 'drain', { signal: this.#signal })
  }
}

function terminalWidth(): number | null {
  return process.stdout.isTTY ? Math.max(40, process.stdout.columns || 80) : null
}
