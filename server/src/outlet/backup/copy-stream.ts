import assert from 'node:assert/strict'
import type { ClientBase, Connection, Submittable } from 'pg'

/** What PostgreSQL sends before the first row: a signature, flags, and the length of an empty extension. */
const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
/** In place of the column count of another row. */
const TRAILER = Buffer.from([0xff, 0xff])
const BLOCK_BYTES = 256 * 1_024
/** Reading pauses when this many blocks wait for the consumer. */
const WAITING_BLOCKS_MAX = 4

const COPY_DATA = 0x64
const COPY_DONE = Buffer.from([0x63, 0, 0, 0, 4])
const COPY_FAIL = Buffer.from([0x66, 0, 0, 0, 5, 0])

/**
 * The rows of a `copy … to stdout (format binary)` in blocks of complete rows, without header and trailer, so that
 * rows of several statements can be loaded as one. `onRow` sees each row as it arrives. It must not keep the buffer.
 */
export async function* copyRows(
  client: ClientBase,
  text: string,
  onRow: (row: Buffer) => void,
): AsyncGenerator<Buffer, void, void> {
  const run = new CopyOut(text, onRow)
  client.query(run)
  try {
    for (let block = await run.next(); block !== null; block = await run.next()) yield block
  } finally {
    run.stop()
  }
}

/** `pg` calls the handlers by name. */
class CopyOut implements Submittable {
  readonly #text: string
  readonly #onRow: (row: Buffer) => void
  #connection: Connection | null = null
  #isStarted = false
  #isOver = false
  #error: unknown = null
  #rows: Buffer[] = []
  #rowBytes = 0
  readonly #blocks: Buffer[] = []
  #wake: () => void = () => {}

  constructor(text: string, onRow: (row: Buffer) => void) {
    this.#text = text
    this.#onRow = onRow
  }

  submit(connection: Connection): void {
    this.#connection = connection
    connection.query(this.#text)
  }

  /** Null after the last block. */
  async next(): Promise<Buffer | null> {
    for (;;) {
      const block = this.#blocks.shift()
      if (this.#blocks.length < WAITING_BLOCKS_MAX) this.#connection?.stream.resume()
      if (block) return block
      if (this.#error !== null) throw this.#error
      if (this.#isOver) return null
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** A copy that is still running can only be stopped by closing the connection. */
  stop(): void {
    if (!this.#isOver) this.#connection?.stream.destroy()
  }

  /** PostgreSQL sends one message per row; the first one starts with the header. `pg` reuses the buffer. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    const row = this.#isStarted ? chunk : withoutHeader(chunk)
    this.#isStarted = true
    if (row.length === 0 || row.equals(TRAILER) || this.#error !== null) return
    try {
      this.#onRow(row)
    } catch (error) {
      this.#error = error
      this.#wake()
      return
    }
    this.#rows.push(Buffer.from(row))
    this.#rowBytes += row.length
    if (this.#rowBytes >= BLOCK_BYTES) this.#endBlock()
  }

  #endBlock(): void {
    if (this.#rowBytes === 0) return
    this.#blocks.push(Buffer.concat(this.#rows, this.#rowBytes))
    this.#rows = []
    this.#rowBytes = 0
    if (this.#blocks.length >= WAITING_BLOCKS_MAX) this.#connection?.stream.pause()
    this.#wake()
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#endBlock()
    this.#isOver = true
    this.#wake()
  }

  handleError(error: unknown): void {
    this.#error ??= error
    this.#isOver = true
    this.#wake()
  }
}

function withoutHeader(chunk: Buffer): Buffer {
  const header = chunk.subarray(0, HEADER.length)
  assert(header.equals(HEADER), 'a binary copy starts with its header')
  return chunk.subarray(HEADER.length)
}

/** Loads rows that `copyRows` returned, with a `copy … from stdin (format binary)`. Returns their number. */
export async function loadRows(
  client: ClientBase,
  text: string,
  blocks: AsyncIterable<Buffer>,
): Promise<number> {
  const run = new CopyIn(text)
  client.query(run)
  await run.ready
  try {
    await run.send(HEADER)
    for await (const block of blocks) await run.send(block)
    await run.send(TRAILER)
  } catch (error) {
    // The server answers with an error, after which the connection can be used again.
    await run.fail()
    throw error
  }
  return await run.finish()
}

class CopyIn implements Submittable {
  readonly #text: string
  readonly #ready = Promise.withResolvers<void>()
  readonly #ended = Promise.withResolvers<void>()
  #connection: Connection | null = null
  #error: unknown = null
  #rows = 0

  constructor(text: string) {
    this.#text = text
  }

  /** Resolves when the server waits for rows. */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  submit(connection: Connection): void {
    this.#connection = connection
    connection.query(this.#text)
  }

  async send(bytes: Buffer): Promise<void> {
    if (this.#error !== null) throw this.#error
    const start = Buffer.alloc(5)
    start.writeUInt8(COPY_DATA, 0)
    start.writeUInt32BE(bytes.length + 4, 1)
    const stream = this.#connection?.stream
    stream?.write(start)
    // Waits until the bytes have left, so that at most one block waits in memory.
    await new Promise<void>((resolve, reject) => {
      stream?.write(bytes, (error) => (error ? reject(error) : resolve()))
    })
  }

  async finish(): Promise<number> {
    this.#connection?.stream.write(COPY_DONE)
    await this.#ended.promise
    if (this.#error !== null) throw this.#error
    return this.#rows
  }

  async fail(): Promise<void> {
    if (this.#error === null) this.#connection?.stream.write(COPY_FAIL)
    await this.#ended.promise
  }

  handleCopyInResponse(): void {
    this.#ready.resolve()
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#rows = Number(text.split(' ')[1])
  }

  handleReadyForQuery(): void {
    this.#ended.resolve()
  }

  handleError(error: unknown): void {
    this.#error ??= error
    this.#ready.reject(error)
    // `pg` reports the end of a failed statement to the next one.
    this.#ended.resolve()
  }
}
