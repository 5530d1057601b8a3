import { count } from './format.ts'
import { printEscaped } from './print.ts'
import { formatFields, Table } from './table.ts'

/** What a cell shows. Null is a dash. */
type Cell = string | number | Date | null

/** Prints items as rows, page by page, so that a long list needs no memory. Nothing is cut. */
export class Rows<T> {
  readonly #table: Table<T>

  constructor(columns: readonly { title: string; cell: (item: T) => Cell }[]) {
    this.#table = new Table(
      columns.map(({ title, cell }) => ({ title, value: (item) => textOf(cell(item)) })),
      { widthMax: null },
    )
  }

  print(items: readonly T[]): void {
    printEscaped(this.#table.format(items))
  }
}

/** Prints the fields of one item, one per line. */
export class Fields {
  readonly #fields: [name: string, text: string][] = []

  add(name: string, cell: Cell): void {
    this.#fields.push([name, textOf(cell) ?? ''])
  }

  print(): void {
    printEscaped(formatFields(this.#fields))
  }
}

/** Times without milliseconds, in UTC. */
function textOf(cell: Cell): string | null {
  if (cell instanceof Date) return `${cell.toISOString().slice(0, 19)}Z`
  return typeof cell === 'number' ? count(cell) : cell
}
