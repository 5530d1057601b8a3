import assert from 'node:assert/strict'
import { parseArchiveUrl } from './archive-url.ts'
import { openFolderStore } from './folder-store.ts'
import { openS3Store, type S3Limits } from './s3-store.ts'
import { StorageError } from './storage-error.ts'

export { StorageError }

export type ObjectState = { bytes: number; readiness: 'ready' | 'cold' | 'restoring' }

/**
 * Stores the archive's segments. Storage failures are a `StorageError`. Every operation has a deadline,
 * and rejects with the signal's reason as soon as the signal aborts.
 */
export type ObjectStore = AsyncDisposable & {
  /** Whole or not at all; durable when it returns. Overwrites. */
  put(key: string, bytes: Buffer, signal?: AbortSignal): Promise<void>
  /** Null when there is none. */
  read(key: string, signal?: AbortSignal): Promise<Buffer | null>
  /** The bytes from `start` to before `end`, fewer where the object ends; null when there is none. */
  readRange(key: string, start: number, end: number, signal?: AbortSignal): Promise<Buffer | null>
  /** Null when there is none. */
  stat(key: string, signal?: AbortSignal): Promise<ObjectState | null>
  /** Asks for an object of a cold class to be brought back; harmless when it is ready or asked for. */
  restore(key: string, signal?: AbortSignal): Promise<void>
  /** Harmless when there is none. */
  delete(key: string, signal?: AbortSignal): Promise<void>
}

/** An object is held in memory as a whole, on its way in and out. */
export const OBJECT_BYTES_MAX = 256 * 1_024 * 1_024

/**
 * Opens `file:///…` or `s3://bucket/prefix`. Neither is touched before the first operation on an object.
 * `s3Region` is what the environment's AWS_REGION says; null when it is not set.
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

/** Both stores trust a key to be one of ours, which cannot lead out of the place they were given. */
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
 * The same store for a background worker: when `signal` aborts, a running operation gets `graceMs`
 * before it is canceled, so that storage that hangs doesn't delay the shutdown.
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

/** The object that shows that a storage is the archive with this id. */
export function archiveMarkerKey(archiveId: string): string {
  return `annals-archive-${archiveId}`
}

const MARKER_KEY = /^annals-archive-[0-9a-f]{32}$/
/**
 * `<workspaceId>/<YYYY-MM>/<16-digit seq>.parquet`, and before the dot what keeps two apart. The mark of a
 * file that is not in the catalog yet ends in `.parquet.draft`.
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
