/** Bidirectional and line controls, which the category `Cc` doesn't contain. */
const CONTROLS = /[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

/** Stored names come from customers. Control characters in them could move the cursor or hide other text. */
export function escapeControls(text: string): string {
  return text.replaceAll(CONTROLS, (found) => {
    return `\\u{${found.codePointAt(0)?.toString(16)}}`
  })
}

/** What a cell shows. Null is a dash. */
type Cell = string | number | Date | null

type Column<T> = { title: string; cell: (item: T) => Cell }

/**
 * Prints items as rows, page by page, so that a long list needs no memory. Every page has the column widths of the
 * first one, unless it needs more. The last column is not padded, so put names there.
 */
export class Rows<T> {
  readonly #columns: readonly Column<T>[]
  #widths: number[]
  #isFirst = true

  constructor(columns: readonly Column<T>[]) {
    this.#columns = columns
    this.#widths = columns.map(({ title }) => title.length)
  }

  print(items: readonly T[]): void {
    const rows = items.map((item) => this.#columns.map(({ cell }) => textOf(cell(item))))
    this.#widths = this.#widths.map((width, column) =>
      Math.max(width, ...rows.map((row) => row[column]?.length ?? 0)),
    )
    if (this.#isFirst) rows.unshift(this.#columns.map(({ title }) => title))
    this.#isFirst = false
    process.stdout.write(rows.map((row) => this.#line(row)).join(''))
  }

  #line(row: readonly string[]): string {
    const cells = row.map((text, column) => text.padEnd(this.#widths[column] ?? 0))
    return `${cells.join('  ').trimEnd()}\n`
  }
}

/** Times without milliseconds, in UTC. */
function textOf(cell: Cell): string {
  if (cell === null) return '-'
  if (cell instanceof Date) return `${cell.toISOString().slice(0, 19)}Z`
  return typeof cell === 'number' ? cell.toLocaleString('en-US') : escapeControls(cell)
}

/** Prints the fields of one item, one per line. */
export class Fields {
  readonly #lines: [name: string, text: string][] = []

  add(name: string, cell: Cell): void {
    this.#lines.push([name, textOf(cell)])
  }

  print(): void {
    const width = Math.max(...this.#lines.map(([name]) => name.length))
    const lines = this.#lines.map(([name, text]) => `${name.padEnd(width)}  ${text}\n`)
    process.stdout.write(lines.join(''))
  }
}
