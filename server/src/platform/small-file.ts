import * as fs from 'node:fs'
import { OperatorError } from '../errors.ts'

/** Longer than any key or password. */
const BYTES_MAX = 4_096
/** For a program that writes the key to a pipe, such as the client of a vault. */
const PIPE_MS_MAX = 10_000
const POLL_MS = 20

/**
 * Reads a key or a password from a file or a pipe, without blocking forever: a pipe may have no writer,
 * and a device may have no end. Throws an OperatorError for anything that can't be a key.
 */
export function readSmallFile(path: string, { pipeMsMax = PIPE_MS_MAX } = {}): string {
  const fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK)
  try {
    const found = fs.fstatSync(fd)
    if (!found.isFile() && !found.isFIFO()) {
      throw new OperatorError(`${path} is neither a file nor a pipe.`)
    }
    const giveUpAtMs = performance.now() + (found.isFIFO() ? pipeMsMax : 0)
    const bytes = Buffer.alloc(BYTES_MAX + 1)
    let length = 0
    for (;;) {
      const count = readSome(fd, bytes, length)
      length += count ?? 0
      if (length > BYTES_MAX) throw new OperatorError(`${path} has more than ${BYTES_MAX} bytes.`)
      // An empty pipe looks ended until its writer opens it.
      const isOver = count === 0 && (length > 0 || found.isFile())
      if (isOver) return bytes.toString('utf8', 0, length)
      if (count !== null && count > 0) continue
      if (performance.now() >= giveUpAtMs) {
        throw new OperatorError(
          `${path} is a pipe that was not closed within ${pipeMsMax / 1_000} seconds.`,
        )
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, POLL_MS)
    }
  } finally {
    fs.closeSync(fd)
  }
}

/** Null if a pipe has a writer but no data yet. */
function readSome(fd: number, bytes: Buffer, at: number): number | null {
  try {
    return fs.readSync(fd, bytes, at, bytes.length - at, null)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return null
    throw error
  }
}
