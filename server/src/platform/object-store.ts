import assert from 'node:assert/strict'
import { fileURLToPath } from 'node:url'
import { openFolderStore } from './folder-store.ts'
import { openS3Store, type S3Limits } from './s3-store.ts'
import { StorageError } from './storage-error.ts'

export { StorageError }

export type ObjectState = { bytes: number; readiness: 'ready' | 'cold' | 'restoring' }

/** Where the archive's segments lie. Whatever fails for the storage's sake is a `StorageError`. */
export type ObjectStore = AsyncDisposable & {
  /** Whole or not at all; durable when it returns. Overwrites. */
  put(key: string, bytes: Buffer): Promise<void>
  /** Null when there is none. */
  read(key: string): Promise<Buffer | null>
  /** The bytes from `start` to before `end`, fewer where the object ends; null when there is none. */
  readRange(key: string, start: number, end: number): Promise<Buffer | null>
  /** Null when there is none. */
  stat(key: string): Promise<ObjectState | null>
  /** Asks for an object of a cold class to be brought back; harmless when it is ready or asked for. */
  restore(key: string): Promise<void>
  /** Harmless when there is none. */
  delete(key: string): Promise<void>
}

/** An object is held in memory as a whole, on its way in and out. */
export const OBJECT_BYTES_MAX = 256 * 1_024 * 1_024

/**
 * Opens `file:///…` or `s3://bucket/prefix`. S3 is first spoken to when an object is asked for.
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
  const { protocol, hostname, pathname, username, password, search, hash } = parseUrl(url)
  // Not repeated in the sentence: what does not belong into the address may be a secret.
  if (username || password || search || hash) {
    throw new StorageError(
      'ANNALS_ARCHIVE_URL holds more than a place: no user, password or query.',
    )
  }
  switch (protocol) {
    case 'file:':
      if (hostname !== '')
        throw new StorageError('ANNALS_ARCHIVE_URL names a host: write file:///.')
      return withCheckedKeys(await openFolderStore(fileURLToPath(url), { objectBytesMax }))
    case 's3:':
      return withCheckedKeys(
        await openS3Store(
          { bucket: hostname, prefix: decodeURIComponent(pathname).replaceAll(/^\/+|\/+$/g, '') },
          {
            endpoint: options.s3Endpoint,
            region: options.s3Region,
            limits: options.s3Limits ?? {},
            objectBytesMax,
          },
        ),
      )
    default:
      throw new StorageError('ANNALS_ARCHIVE_URL must start with file: or s3:.')
  }
}

function parseUrl(url: string): URL {
  const parsed = URL.parse(url)
  if (parsed === null) throw new StorageError('ANNALS_ARCHIVE_URL is not an address.')
  return parsed
}

/** Both stores trust a key to be one of ours, which cannot lead out of the place they were given. */
function withCheckedKeys(store: ObjectStore): ObjectStore {
  return {
    put: async (key, bytes) => {
      assert(bytes.length <= OBJECT_BYTES_MAX, 'an object is within its bound')
      await store.put(checkKey(key), bytes)
    },
    read: async (key) => await store.read(checkKey(key)),
    readRange: async (key, start, end) => {
      assert(start >= 0 && start < end && end - start <= OBJECT_BYTES_MAX, 'a range has its bounds')
      return await store.readRange(checkKey(key), start, end)
    },
    stat: async (key) => await store.stat(checkKey(key)),
    restore: async (key) => await store.restore(checkKey(key)),
    delete: async (key) => await store.delete(checkKey(key)),
    [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
  }
}

/** `<workspaceId>/<YYYY-MM>/<16-digit seq>.parquet`, and before the dot what keeps two apart. */
const KEY =
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\/\d{4}-(?:0[1-9]|1[0-2])\/\d{16}(?:-[0-9a-f]{16})?\.parquet$/

function checkKey(key: string): string {
  assert(KEY.test(key), 'a key is <workspaceId>/<YYYY-MM>/<16-digit seq>.parquet')
  return key
}
