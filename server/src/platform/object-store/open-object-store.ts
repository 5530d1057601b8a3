import assert from 'node:assert/strict'
import { parseArchiveUrl } from './archive-url.ts'
import { openFolderStore } from './folder-store.ts'
import { isObjectKey, isSignerKey, SIGNER_PREFIX } from './object-key.ts'
import {
  LISTED_KEYS_MAX,
  OBJECT_BYTES_MAX,
  type ObjectStore,
  REPLACED_BYTES_MAX,
} from './object-store.ts'
import { openS3Store, type S3Limits } from './s3-store.ts'

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
  const location = parseArchiveUrl(url)
  if (location.kind === 'folder') {
    return withCheckedKeys(openFolderStore(location.path, { objectBytesMax }))
  }
  const { s3Endpoint: endpoint, s3Region: region, s3Limits: limits = {} } = options
  return withCheckedKeys(await openS3Store(location, { endpoint, region, limits, objectBytesMax }))
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
    readTagged: async (key, signal) => await store.readTagged(checkKey(key), signal),
    replace: async (key, write, signal) => {
      assert(write.bytes.length <= REPLACED_BYTES_MAX, 'a replaced object is small')
      return await store.replace(checkKey(key), write, signal)
    },
    list: async (prefix, page, signal) => {
      assert(prefix === SIGNER_PREFIX, 'only the objects of the signer are listed')
      assert(page.limit >= 1 && page.limit <= LISTED_KEYS_MAX, 'a page has its bounds')
      const { keys, cursor } = await store.list(prefix, page, signal)
      // Others may have put something there.
      return { keys: keys.filter(isSignerKey), cursor }
    },
    stat: async (key, signal) => await store.stat(checkKey(key), signal),
    restore: async (key, signal) => await store.restore(checkKey(key), signal),
    delete: async (key, signal) => await store.delete(checkKey(key), signal),
    [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
  }
}

function checkKey(key: string): string {
  assert(
    isObjectKey(key),
    'a key is <workspaceId>/<YYYY-MM>/<16-digit seq>-<16 hex digits>.parquet, exports/<companyId>/<jobId>/<6-digit part>, signer/<workspaceId> or annals-archive-<32 hex digits>',
  )
  return key
}
