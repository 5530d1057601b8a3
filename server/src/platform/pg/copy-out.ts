import type { CompiledQuery } from 'kysely'
import { type Connection, escapeLiteral, type Submittable } from 'pg'
import { chargeBytes, rowOwner } from '../scheduling/row-cost.ts'
import { withDeadline } from '../time/deadline.ts'

/** The server cancels a statement earlier. This is for a server that no longer responds. */
const RESPONSE_MS_MAX = 35_000

/** The result is larger than the caller allows. The connection is closed. */
export class CopyTooLargeError extends Error {
  override name = 'CopyTooLargeError'
}

/** The result is written to `room`, or to a larger buffer if it doesn't fit. */
type Room = {
  room: Buffer
  /** Rows beyond this size are dropped. The first row is always kept. */
  keptBytesMax: number
  /** A larger result is an error. */
  bytesMax: number
}
/** Complete rows, and whether others were dropped. */
export type Copied = { bytes: Buffer; isCut: boolean }

/** A pool, or one connection of it. */
export type CopySource = {
  connect: () => Promise<{
    query: (run: Submittable) => unknown
    release: (shouldDestroy?: boolean) => void
  }>
}

/** The end marker, which replaces the column count of another row, arrives as a message of its own. */
const TRAILER_BYTES = 2

/**
 * Returns the rows of a query in the binary format of `copy … to stdout`. Reads them completely, so that no
 * connection waits for a slow consumer. This is twice as fast as reading single rows, and costs the
 * database less than half of the text format: 1.4 µs per row instead of 3.1.
 */
export async function copyOut(pool: CopySource, query: CompiledQuery, into: Room): Promise<Copied> {
  const client = await pool.connect()
  const owner = rowOwner()
  const { promise: reading, ...settle } = Promise.withResolvers<Copied>()
  const run = new CopyRun(`copy (${withLiterals(query)}) to stdout (format binary)`, into, settle)
  let shouldDestroy = true
  try {
    client.query(run)
    const copied = await withDeadline(reading, {
      timeoutMs: RESPONSE_MS_MAX,
      late: () => new Error('Connection terminated: the database does not respond'),
    })
    shouldDestroy = false
    return copied
  } finally {
    if (owner !== null) chargeBytes(owner, run.bytesRead)
    client.release(shouldDestroy)
  }
}

type Settle = { resolve: (copied: Copied) => void; reject: (error: unknown) => void }

/**
 * The interface that `pg` expects of a query that handles the protocol itself. It calls the handlers by name.
 */
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

  get bytesRead(): number {
    return this.#used + this.#dropped
  }

  submit(connection: Connection): void {
    connection.query(this.#text)
  }

  /**
   * PostgreSQL sends one message per row. The chunk is a view of the buffer that `pg` reads into, and that
   * it will overwrite.
   */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    const end = this.#used + chunk.length
    if (end + this.#dropped > this.#bytesMax) {
      // A copy can only be stopped by closing the connection, which `copyOut` does after this rejection.
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

/** `copy` accepts no parameters, so this is the only place that writes values into a statement. */
function withLiterals({ sql, parameters }: CompiledQuery): string {
  return sql.replaceAll(/\$(\d+)/g, (_, number: string) => literal(parameters[Number(number) - 1]))
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (typeof value === 'number') return String(value)
  // Not an ISO text, because PostgreSQL writes the years before 1 differently.
  if (value instanceof Date) {
    return `(timestamptz 'epoch' + ${value.getTime()} * interval '1 millisecond')`
  }
  if (typeof value === 'string') return escapeLiteral(value)
  if (Array.isArray(value)) return `array[${value.map(literal).join(', ')}]`
  throw new TypeError('a value that has no literal')
}
