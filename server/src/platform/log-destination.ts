import { constants, fstatSync, openSync, writeSync } from 'node:fs'

/**
 * Where log lines go. Each line is written at once or dropped: a full disk, a full pipe or a reader
 * that is gone must neither block the service nor keep it from stopping. Dropped lines are counted,
 * and the next line that can be written is preceded by a notice with their number.
 */
export class LogDestination {
  readonly #open: () => number
  readonly #noticeOf: (lines: number) => string
  #fd: number | null = null
  /** The end of a line that a pipe took in part. It is written before anything else. */
  #rest: Buffer | null = null
  #dropped = 0
  #unreported = 0

  /** `open` is called for the first line and returns a descriptor that does not block. */
  constructor(open: () => number, noticeOf: (lines: number) => string) {
    this.#open = open
    this.#noticeOf = noticeOf
  }

  /** Lines dropped so far. */
  get dropped(): number {
    return this.#dropped
  }

  write(line: string): void {
    if (this.#finishRest() && this.#report() && this.#begin(line)) return
    this.#dropped += 1
    this.#unreported += 1
  }

  /** True when nothing is left of an earlier line. */
  #finishRest(): boolean {
    if (this.#rest !== null) this.#begin(this.#rest)
    return this.#rest === null
  }

  #report(): boolean {
    if (this.#unreported === 0) return true
    if (!this.#begin(this.#noticeOf(this.#unreported))) return false
    this.#unreported = 0
    return this.#rest === null
  }

  /** Writes as much as fits; false when nothing did. */
  #begin(line: string | Buffer): boolean {
    const bytes = Buffer.from(line)
    try {
      const written = writeSync((this.#fd ??= this.#open()), bytes)
      this.#rest = written < bytes.length ? bytes.subarray(written) : null
      return written > 0
    } catch {
      return false
    }
  }
}

/**
 * A descriptor for the same file on which a write to a full pipe fails instead of blocking. A pipe is
 * opened again, because the flag belongs to the open pipe and other processes may share that one.
 * Sockets cannot be opened again; Node makes them non-blocking when it opens `process.stdout`.
 */
export function openNonBlocking(fd: number): number {
  try {
    if (!fstatSync(fd).isFIFO()) return fd
    return openSync(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK)
  } catch {
    return fd
  }
}
