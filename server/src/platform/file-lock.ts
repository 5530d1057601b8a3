import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'

const POLL_MS = 20
const SQLITE_BUSY = 5
const SQLITE_FULL = 13

/**
 * Takes a lock that excludes every other process, and every other caller in this one, until it is
 * disposed of; null when it was not free within `waitMsMax`, or before `signal` aborted.
 *
 * SQLite is used for its lock alone, nothing is ever stored: it takes the kernel's lock, which
 * goes with the process however that ends, and Node has no other call that does. A file that is
 * made and removed would stay behind a killed process. Nobody else may open the file: closing any
 * handle on it would drop the lock of the whole process.
 */
export async function acquireFileLock(
  path: string,
  { waitMsMax, signal }: { waitMsMax: number; signal?: AbortSignal | undefined },
): Promise<Disposable | null> {
  const giveUpAtMs = performance.now() + waitMsMax
  const database = new DatabaseSync(path)
  for (;;) {
    try {
      database.exec('begin exclusive')
      return { [Symbol.dispose]: () => database.close() }
    } catch (error) {
      if (!hasSqliteCode(error, SQLITE_BUSY)) {
        database.close()
        throw error
      }
    }
    if (signal?.aborted || performance.now() >= giveUpAtMs) {
      database.close()
      return null
    }
    await delay(POLL_MS)
  }
}

/** Whether `acquireFileLock` failed because the disk is full: SQLite creates a journal beside the file. */
export function isDiskFull(error: unknown): boolean {
  return hasSqliteCode(error, SQLITE_FULL)
}

function hasSqliteCode(error: unknown, code: number): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === code
}
