const LF = 10
const QUOTE = 34
const STUB = Buffer.from('{"stub":true')

/** Counts the rows of an export while it arrives. Stubs and the header of a CSV file aren't rows. */
export type RowCounter = {
  add(chunk: Buffer): void
  readonly rows: number
}

export function rowCounter(contentType: string): RowCounter {
  return contentType.startsWith('text/csv') ? new CsvRows() : new JsonlRows()
}

class JsonlRows implements RowCounter {
  rows = 0
  /** The first bytes of the current line, up to the length of `STUB`. */
  #start = Buffer.alloc(0)

  add(chunk: Buffer): void {
    let from = 0
    for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
      this.#remember(chunk.subarray(from, at))
      if (!this.#start.equals(STUB)) this.rows += 1
      this.#start = Buffer.alloc(0)
      from = at + 1
    }
    this.#remember(chunk.subarray(from))
  }

  #remember(part: Buffer): void {
    const missing = STUB.length - this.#start.length
    if (missing > 0) this.#start = Buffer.concat([this.#start, part.subarray(0, missing)])
  }
}

class CsvRows implements RowCounter {
  #lines = 0
  #isQuoted = false

  get rows(): number {
    return Math.max(0, this.#lines - 1)
  }

  add(chunk: Buffer): void {
    for (const byte of chunk) {
      // A quote in a quoted cell is doubled, which changes nothing here.
      if (byte === QUOTE) this.#isQuoted = !this.#isQuoted
      else if (byte === LF && !this.#isQuoted) this.#lines += 1
    }
  }
}
