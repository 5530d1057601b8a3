import assert from 'node:assert/strict'
import { parseArchiveUrl } from './archive-url.ts'
import { openFolderStore } from './folder-store.ts'
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
      return { keys: keys.filter((key) => SIGNER_KEY.test(key)), cursor }
    },
    stat: async (key, signal) => await store.stat(checkKey(key), signal),
    restore: async (key, signal) => await store.restore(checkKey(key), signal),
    delete: async (key, signal) => await store.delete(checkKey(key), signal),
    [Symbol.asyncDispose]: async () => await store[Symbol.asyncDispose](),
  }
}

const MARKER_KEY = /^annals-archive-[0-9a-f]{32}$/
/**
 * `<workspaceId>/<YYYY-MM>/<16-digit seq>-<16 hex digits>.parquet`. The hex digits are random. The marker of
 * a file that is not in the catalog yet ends in `.parquet.draft`.
 */
const SEGMENT_KEY =
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\/\d{4}-(?:0[1-9]|1[0-2])\/\d{16}-[0-9a-f]{16}\.parquet(?:\.draft)?$/

/** `exports/<companyId>/<jobId>/<6-digit part>`: a part of the file of a scheduled export. */
const EXPORT_KEY = /^exports(?:\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}){2}\/\d{6}$/

const SIGNER_PREFIX = 'signer/'
/**
 * The signer's objects: `signer/<workspaceId>`, `signer/<workspaceId>.replaced-<time>` for state that an operator
 * replaced, `signer/<workspaceId>.lost` for a workspace that an operator accepted as lost, and two objects for all
 * workspaces.
 */
const SIGNER_KEY =
  /^signer\/(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.replaced-\d{8}T\d{9}Z|\.lost)?|keys|conditional-writes)$/

function checkKey(key: string): string {
  assert(
    [SEGMENT_KEY, EXPORT_KEY, MARKER_KEY, SIGNER_KEY].some((pattern) => pattern.test(key)),
    'a key is <workspaceId>/<YYYY-MM>/<16-digit seq>-<16 hex digits>.parquet, exports/<companyId>/<jobId>/<6-digit part>, signer/<workspaceId> or annals-archive-<32 hex digits>',
  )
  return key
}
