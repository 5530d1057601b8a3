import { setTimeout as delay } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'

const POLL_MS = 20
const SQLITE_BUSY = 5
/** With the journal in memory, SQLite writes nothing, so the lock also works on a full disk. */
const ACQUIRE_LOCK = 'pragma journal_mode = memory; begin exclusive'

/**
 * Acquires a lock that excludes all other processes, and other callers in this one, until it is disposed
 * of. Returns null if it isn't free within `waitMsMax`, or before `signal` aborts.
 *
 * SQLite is used only for its lock, and stores nothing. It takes a kernel lock, which is released when the
 * process ends in any way, and Node has no other API for that. A lock file that is created and deleted
 * would stay behind if the process were killed. Nothing else in this process may open the file: closing any
 * handle on it would release the lock.
 */
export async function acquireFileLock(
  path: string,
  { waitMsMax, signal }: { waitMsMax: number; signal?: AbortSignal | undefined },
): Promise<Disposable | null> {
  const giveUpAtMs = performance.now() + waitMsMax
  const database = new DatabaseSync(path)
  for (;;) {
    try {
      database.exec(ACQUIRE_LOCK)
      return { [Symbol.dispose]: () => database.close() }
    } catch (error) {
      if (!isBusy(error)) {
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

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY
}
