import { statfsSync } from 'node:fs'

const FOLDER = '/dev/shm'
const TMPFS = 0x0102_1994
/** The engines of a test run use less than 2 GB at once. */
const FREE_BYTES_MIN = 4 * 1024 ** 3
const MEMORY_BYTES_MIN = 8 * 1024 ** 3

/**
 * A folder in memory, or null if there is none with enough space. Each database has 450 files, and creating
 * and deleting them on a disk takes a quarter of PostgreSQL's CPU time in the tests.
 */
export function findMemoryFolder(): string | null {
  try {
    const { type, bavail, bsize } = statfsSync(FOLDER)
    const isLarge = bavail * bsize >= FREE_BYTES_MIN
    const isFree = process.availableMemory() >= MEMORY_BYTES_MIN
    return type === TMPFS && isLarge && isFree ? FOLDER : null
  } catch {
    return null
  }
}
