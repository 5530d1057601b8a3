import type { CompiledQuery } from 'kysely'
import { type Connection, escapeLiteral, type Pool, type Submittable } from 'pg'
import { withDeadline } from './deadline.ts'

/** The server ends a statement by itself before; this is for a server that cannot tell us. */
const ANSWER_MS_MAX = 35_000

/** More came than the caller has room for. The connection is gone with it. */
export class CopyTooLargeError extends Error {
  override name = 'CopyTooLargeError'
}

/** What is read is written into `room`, or into a larger buffer when that is not enough. */
type Room = {
  room: Buffer
  /** Rows beyond these bytes are dropped. The first row is always kept. */
  keptBytesMax: number
  /** More than this is an error. */
  bytesMax: number
}
/** Whole rows, and whether others were dropped. */
export type Copied = { bytes: Buffer; isCut: boolean }

/** Instead of the number of columns, behind the last row: a message of its own. */
const TRAILER_BYTES = 2

/**
 * The rows of a query as `copy … to stdout` prints them, in PostgreSQL's binary format: read whole, so
 * that no connection is held while somebody slow takes them. It is twice as fast as rows one by one,
 * and costs the database less than half of what the text format does: 1.4 µs a row, not 3.1.
 */
export async function copyOut(pool: Pool, query: CompiledQuery, into: Room): Promise<Copied> {
  const client = await pool.connect()
  let isSpoiled = true
  try {
    const text = `copy (${withLiterals(query)}) to stdout (format binary)`
    const reading = new Promise<Copied>((resolve, reject) => {
      client.query(new CopyRun(text, into, { resolve, reject }))
    })
    const copied = await withDeadline(reading, {
      timeoutMs: ANSWER_MS_MAX,
      late: () => new Error('Connection terminated: the database does not answer'),
    })
    isSpoiled = false
    return copied
  } finally {
    client.release(isSpoiled)
  }
}

type Settle = { resolve: (copied: Copied) => void; reject: (error: unknown) => void }

/** What `pg` expects of a query that speaks the protocol itself; it calls the handlers by name. */
class CopyRun implements Submittable {
  readonly #text: string
  readonly #keptBytesMax: number
  readonly #bytesMax: number
  readonly #settle: Settle
  #bytes: Buffer
  #used = 0
  #dropped = 0

  constructor(text: string, { room, keptBytesMax, bytesMax }: Room, settle: Settle) {
    this.#text = text
    this.#keptBytesMax = keptBytesMax
    this.#bytesMax = bytesMax
    this.#settle = settle
    this.#bytes = room
  }

  submit(connection: Connection): void {
    connection.query(this.#text)
  }

  /**
   * PostgreSQL sends one message per row. The chunk is a part of the buffer that `pg` reads into, and
   * will read into again.
   */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    const end = this.#used + chunk.length
    if (end + this.#dropped > this.#bytesMax) {
      // There is no way to stop a copy but to hang up, which whoever waits will do.
      this.#settle.reject(new CopyTooLargeError(`a copy of more than ${this.#bytesMax} bytes`))
      return
    }
    const isBeyond = this.#dropped > 0 || (this.#used > 0 && end > this.#keptBytesMax)
    if (isBeyond && chunk.length > TRAILER_BYTES) {
      this.#dropped += chunk.length
      return
    }
    if (end > this.#bytes.length) this.#grow(end)
    chunk.copy(this.#bytes, this.#used)
    this.#used = end
  }

  #grow(bytesMin: number): void {
    const bytes = Math.max(bytesMin, Math.min(2 * bytesMin, this.#keptBytesMax))
    const larger = Buffer.allocUnsafeSlow(bytes + TRAILER_BYTES)
    this.#bytes.copy(larger, 0, 0, this.#used)
    this.#bytes = larger
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    const bytes = this.#bytes.subarray(0, this.#used)
    this.#settle.resolve({ bytes, isCut: this.#dropped > 0 })
  }

  handleError(error: unknown): void {
    this.#settle.reject(error)
  }
}

/** `copy` takes no parameters: this is the one place that writes values into a statement. */
function withLiterals({ sql, parameters }: CompiledQuery): string {
  return sql.replaceAll(/\$(\d+)/g, (_, number: string) => literal(parameters[Number(number) - 1]))
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'number') return String(value)
  // Not as its text: PostgreSQL spells the years before 1 in another way.
  if (value instanceof Date) {
    return `(timestamptz 'epoch' + ${value.getTime()} * interval '1 millisecond')`
  }
  if (typeof value === 'string') return escapeLiteral(value)
  if (Array.isArray(value)) return `array[${value.map(literal).join(', ')}]`
  throw new TypeError('a value that has no literal')
}
