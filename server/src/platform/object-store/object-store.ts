import { StorageError } from './storage-error.ts'

export { StorageError }

export type TaggedObject = { bytes: Buffer; tag: string }
/** `cursor` is for the next page, and null after the last one. */
export type ListedKeys = { keys: string[]; cursor: string | null }
export type ObjectState = { bytes: number; readiness: 'ready' | 'cold' | 'restoring' }

/**
 * Stores the archive's segments. Storage failures are a `StorageError`. Every operation has a deadline, and
 * rejects with the signal's reason as soon as the signal aborts.
 */
export type ObjectStore = AsyncDisposable & {
  /** Atomic, and durable when it returns. Overwrites an existing object. */
  put(key: string, bytes: Buffer, signal?: AbortSignal): Promise<void>
  /** Null if the object doesn't exist. */
  read(key: string, signal?: AbortSignal): Promise<Buffer | null>
  /**
   * The bytes from `start` up to but not including `end`, or fewer if the object ends
   * earlier; null if it doesn't exist.
   */
  readRange(key: string, start: number, end: number, signal?: AbortSignal): Promise<Buffer | null>
  /**
   * A small object with the tag of this version of it. Null if it doesn't exist. The error for an object that is
   * larger than any that `replace` writes is `isTooLarge`.
   */
  readTagged(key: string, signal?: AbortSignal): Promise<TaggedObject | null>
  /**
   * Writes a small object if its tag is still `tag`, or with null if it doesn't exist yet. Returns the new tag,
   * or null if it wrote nothing. Of several writers with the same tag, at most one succeeds. If a response is
   * lost, null can also mean that this write succeeded: read the object to find out.
   */
  replace(
    key: string,
    write: { bytes: Buffer; tag: string | null },
    signal?: AbortSignal,
  ): Promise<string | null>
  /**
   * The keys that start with `prefix`, a folder with its slash, in pages of at most `limit`. `cursor` is null for
   * the first page. A page can have fewer keys than `limit`, even if it is not the last one.
   */
  list(
    prefix: string,
    page: { cursor: string | null; limit: number },
    signal?: AbortSignal,
  ): Promise<ListedKeys>
  /** Null if the object doesn't exist. */
  stat(key: string, signal?: AbortSignal): Promise<ObjectState | null>
  /**
   * Requests that an object in a cold storage class be restored. Does nothing if it
   * is ready or already requested.
   */
  restore(key: string, signal?: AbortSignal): Promise<void>
  /** Does nothing if the object doesn't exist. */
  delete(key: string, signal?: AbortSignal): Promise<void>
}

/**
 * For `replace`, which holds a lock or sends a single request, and for `readTagged`, whose callers parse the object
 * in one piece. Parsing 120 MB of JSON blocked the node for 22 seconds.
 */
export const REPLACED_BYTES_MAX = 64 * 1_024

/** Keys per page of `list`, as in S3. */
export const LISTED_KEYS_MAX = 1_000

/** Objects are completely in memory while they are read or written. */
export const OBJECT_BYTES_MAX = 256 * 1_024 * 1_024

const STOP_GRACE_MS = 3_000

/**
 * Wraps a store for a background worker: when `signal` aborts, running operations get `graceMs` before
 * they are canceled, so that hanging storage doesn't delay the shutdown.
 */
export function stoppable(
  store: ObjectStore,
  signal: AbortSignal,
  { graceMs = STOP_GRACE_MS }: { graceMs?: number } = {},
): ObjectStore {
  const run = async <T>(operation: (stop: AbortSignal) => Promise<T>): Promise<T> => {
    const stop = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const stopLater = () => {
      timer = setTimeout(() => stop.abort(signal.reason), graceMs)
    }
    signal.addEventListener('abort', stopLater)
    if (signal.aborted) stopLater()
    try {
      return await operation(stop.signal)
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', stopLater)
    }
  }
  return {
    put: (key, bytes) => run((stop) => store.put(key, bytes, stop)),
    read: (key) => run((stop) => store.read(key, stop)),
    readRange: (key, start, end) => run((stop) => store.readRange(key, start, end, stop)),
    readTagged: (key) => run((stop) => store.readTagged(key, stop)),
    replace: (key, write) => run((stop) => store.replace(key, write, stop)),
    list: (prefix, page) => run((stop) => store.list(prefix, page, stop)),
    stat: (key) => run((stop) => store.stat(key, stop)),
    restore: (key) => run((stop) => store.restore(key, stop)),
    delete: (key) => run((stop) => store.delete(key, stop)),
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  }
}

/** The object that marks a storage as the archive with this id. */
export function archiveMarkerKey(archiveId: string): string {
  return `annals-archive-${archiveId}`
}
