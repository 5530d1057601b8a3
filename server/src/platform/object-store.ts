import assert from 'node:assert/strict'
import { parseArchiveUrl } from './archive-url.ts'
import { openFolderStore } from './folder-store.ts'
import { openS3Store, type S3Limits } from './s3-store.ts'
import { StorageError } from './storage-error.ts'

export { StorageError }

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

/** Objects are completely in memory while they are read or written. */
export const OBJECT_BYTES_MAX = 256 * 1_024 * 1_024

/**
 * Opens `file:///…` or `s3://bucket/prefix`. Neither is accessed before the first operation on an object.
 * `s3Region` is the value of AWS_REGION, or null if it isn't set.
 */
export async function openObjectStore(
  url: string,
  options: {
    s3Endpoint: string | null
    s3Region: string | null
    s3Limits?: Partial<S3Limits>
  },
): Promise<ObjectStore> {
  const objectBytesMax = OBJECT_BYTES_MAX
  const place = parseArchiveUrl(url)
  if (place.kind === 'folder') {
    return withCheckedKeys(openFolderStore(place.path, { objectBytesMax }))
  }
  const { s3Endpoint: endpoint, s3Region: region, s3Limits: limits = {} } = options
  return withCheckedKeys(await openS3Store(place, { endpoint, region, limits, objectBytesMax }))
}

/** Both stores rely on valid keys, which can't lead outside of the configured folder or prefix. */
function withCheckedKeys(store: ObjectStore): ObjectStore {
  return {
    put: async (key, bytes, signal) => {
      assert(bytes.length <= OBJECT_BYTES_MAX, 'an object is within its bound')
      await store.put(checkKey(key), bytes, signal)
    },
    read: async (key, signal) => await store.read(checkKey(key), signal),
    readRange: async (key, start, end, signal) => {
      assert(start >= 0 && start < end && end - start <= OBJECT_BYTES_MAX, 'a range has its bounds')
      return await store.readRange(checkKey(key), start, end, signal)
    },
    stat: async (key, signal) => await store.stat(checkKey(key), signal),
    restore: async (key, signal) => await store.restore(checkKey(key), signal),
    delete: async (key, signal) => await store.delete(checkKey(key), signal),
    [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
  }
}

const STOP_GRACE_MS = 3_000

/**
 * The same store for a background worker: when `signal` aborts, a running operation gets `graceMs` before
 * it is canceled, so that hanging storage doesn't delay the shutdown.
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

const MARKER_KEY = /^annals-archive-[0-9a-f]{32}$/
/**
 * `<workspaceId>/<YYYY-MM>/<16-digit seq>.parquet`, with an optional suffix before the dot that
 * distinguishes two files. The marker of a file that is not in the catalog yet ends in `.parquet.draft`.
 */
const SEGMENT_KEY =
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\/\d{4}-(?:0[1-9]|1[0-2])\/\d{16}(?:-[0-9a-f]{16})?\.parquet(?:\.draft)?$/

function checkKey(key: string): string {
  assert(
    SEGMENT_KEY.test(key) || MARKER_KEY.test(key),
    'a key is <workspaceId>/<YYYY-MM>/<16-digit seq>.parquet or annals-archive-<32 hex digits>',
  )
  return key
}
