import { closeSync, ftruncateSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** A file of the spool, with one event per line. It is deleted when all of its events are settled. */
export class SpoolSegment {
  readonly path: string
  /** Null once nothing more is written to it. */
  #file: number | null
  /** Null if they are only on disk. */
  #lines: string[] | null
  #bytes: number
  #count: number

  private constructor(path: string, file: number | null, lines: string[] | null, text: Buffer) {
    this.path = path
    this.#file = file
    this.#lines = lines
    this.#bytes = text.byteLength
    this.#count = countLines(text)
  }

  static create(path: string): SpoolSegment {
    return new SpoolSegment(path, openSync(path, 'ax', 0o600), [], Buffer.alloc(0))
  }

  /** Opens a segment that an earlier process left. `load` reads its events. */
  static recover(path: string): SpoolSegment {
    return new SpoolSegment(path, null, null, readFileSync(path))
  }

  get count(): number {
    return this.#count
  }

  get bytes(): number {
    return this.#bytes
  }

  get isOpen(): boolean {
    return this.#file !== null
  }

  /** Its events, or null if they have to be loaded. */
  get lines(): readonly string[] | null {
    return this.#lines
  }

  /** Appends an event in one system call, so that the event survives as soon as this returns. */
  append(line: string, isKeptInMemory: boolean): void {
    if (this.#file === null) throw new Error('the segment is sealed')
    const bytes = Buffer.from(`${line}\n`)
    try {
      const written = writeSync(this.#file, bytes)
      if (written < bytes.byteLength) throw new Error('The disk is full.')
    } catch (error) {
      // The next event would continue a partial line.
      ftruncateSync(this.#file, this.#bytes)
      throw error
    }
    this.#bytes += bytes.byteLength
    this.#count += 1
    if (isKeptInMemory) this.#lines?.push(line)
    else this.#lines = null
  }

  /** Reads its events from disk. Seals it, so that there will be no others. */
  async load(): Promise<void> {
    this.seal()
    const lines = (await readFile(this.path, 'utf8')).split('\n')
    // What follows the last line break was cut off by a crash, and never acknowledged.
    lines.pop()
    this.#lines = lines
  }

  /** The number of events can't change anymore. */
  seal(): void {
    if (this.#file !== null) closeSync(this.#file)
    this.#file = null
  }

  /** Forgets events that are all settled, so that the file can be used again. */
  clear(): void {
    if (this.#file === null) return
    ftruncateSync(this.#file)
    this.#lines = []
    this.#bytes = 0
    this.#count = 0
  }

  delete(): void {
    this.seal()
    rmSync(this.path, { force: true })
  }
}

const LINE_BREAK = 10

function countLines(text: Buffer): number {
  let count = 0
  for (let at = text.indexOf(LINE_BREAK); at >= 0; at = text.indexOf(LINE_BREAK, at + 1)) count += 1
  return count
}
