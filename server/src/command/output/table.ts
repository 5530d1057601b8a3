import { cutTo, printable, widthOf } from '../../platform/terminal/printable.ts'

export type Column<Row> = {
  title: string
  /** The text of a cell. It may come from anyone, so it is escaped. */
  value: (row: Row) => string | number | null
  isRight?: boolean
  /** Never cut, such as an ID that people copy. */
  isWhole?: boolean
  /** On a terminal that is too narrow, the columns of the lowest rank are left out. Those without one stay. */
  rank?: number
  /** The least width, for tables whose later rows are not known yet. */
  widthMin?: number
}

type TableStyle = {
  /** The columns of the terminal. Lines are cut to fit. Null if the output is not a terminal. */
  widthMax: number | null
}

const GAP = '  '
/** What is left of a column that is cut. */
const CUT_WIDTH_MIN = 8
const EMPTY = '-'
const DIM = '\u001B[2m'
const NORMAL = '\u001B[22m'

/** Formats rows as aligned lines, in as many parts as they arrive in. */
export class Table<Row> {
  #columns: readonly Column<Row>[]
  readonly #style: TableStyle
  readonly #widths: number[]
  #isStarted = false

  constructor(columns: readonly Column<Row>[], style: TableStyle) {
    this.#columns = columns
    this.#style = style
    this.#widths = columns.map(({ title, widthMin }) => Math.max(title.length, widthMin ?? 0))
  }

  /** The lines of these rows, each with a line break. The first call also returns the header. */
  format(rows: readonly Row[]): string {
    if (!this.#isStarted) this.#leaveOut()
    const cells = rows.map((row) => this.#columns.map(({ value }) => cellText(value(row))))
    // A column only gets wider, so that the lines of later calls stay aligned where possible.
    for (const line of cells) {
      line.forEach((cell, nth) => {
        this.#widths[nth] = Math.max(this.#widths[nth] ?? 0, widthOf(cell))
      })
    }
    const widths = this.#fit()
    const lines = cells.map((line) => this.#line(line, widths))
    if (this.#isStarted) return lines.join('')
    this.#isStarted = true
    const header = this.#line(
      this.#columns.map(({ title }) => title),
      widths,
    )
    const isStyled = this.#style.widthMax !== null
    return (isStyled ? `${DIM}${header.trimEnd()}${NORMAL}\n` : header) + lines.join('')
  }

  /** Leaves out columns by rank until the others fit when they are cut. */
  #leaveOut(): void {
    const { widthMax } = this.#style
    if (widthMax === null) return
    for (;;) {
      const least = this.#columns.map(({ title, isWhole, widthMin = 0 }) =>
        isWhole ? Math.max(title.length, widthMin) : Math.max(title.length, CUT_WIDTH_MIN),
      )
      const gaps = GAP.length * (least.length - 1)
      const lowest = Math.min(...this.#columns.map(({ rank = Infinity }) => rank))
      if (lowest === Infinity) return
      if (least.reduce((sum, width) => sum + width, gaps) <= widthMax) return
      const nth = this.#columns.findIndex(({ rank }) => rank === lowest)
      this.#columns = this.#columns.toSpliced(nth, 1)
      this.#widths.splice(nth, 1)
    }
  }

  /** Cuts the widest column until the line fits, or no column can be cut. */
  #fit(): number[] {
    const widths = [...this.#widths]
    const { widthMax } = this.#style
    if (widthMax === null) return widths
    const gaps = GAP.length * (widths.length - 1)
    for (;;) {
      const excess = widths.reduce((sum, width) => sum + width, gaps) - widthMax
      if (excess <= 0) return widths
      const widest = this.#widestToCut(widths)
      if (widest < 0) return widths
      widths[widest] = (widths[widest] ?? 0) - 1
    }
  }

  #widestToCut(widths: readonly number[]): number {
    return widths.reduce((widest, width, nth) => {
      if (this.#columns[nth]?.isWhole || width <= CUT_WIDTH_MIN) return widest
      return width > (widths[widest] ?? 0) ? nth : widest
    }, -1)
  }

  #line(cells: readonly string[], widths: readonly number[]): string {
    const padded = cells.map((cell, nth) => {
      const text = cutTo(cell, widths[nth] ?? 0)
      const blanks = ' '.repeat(Math.max(0, (widths[nth] ?? 0) - widthOf(text)))
      return this.#columns[nth]?.isRight ? blanks + text : text + blanks
    })
    const line = padded.join(GAP).trimEnd()
    return `${this.#style.widthMax === null ? line : cutTo(line, this.#style.widthMax)}\n`
  }
}

function cellText(value: string | number | null): string {
  return value === null || value === '' ? EMPTY : printable(String(value))
}

/** The parts of one thing, a line each. */
export function formatFields(fields: readonly (readonly [name: string, value: string])[]): string {
  const width = Math.max(...fields.map(([name]) => name.length))
  return fields
    .map(([name, value]) => `${printable(name).padEnd(width)}${GAP}${cellText(value)}\n`)
    .join('')
}
