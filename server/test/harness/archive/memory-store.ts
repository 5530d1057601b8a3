import type { ObjectStore } from '../../../src/platform/object-store/object-store.ts'

/** An object store in memory, with the operations for small objects. */
export function memoryStore(): ObjectStore {
  let version = 0
  const objects = new Map<string, { bytes: Buffer; tag: string }>()
  const unexpected = () => Promise.reject(new Error('unexpected call'))
  return {
    put: unexpected,
    read: unexpected,
    readRange: unexpected,
    list: unexpected,
    stat: unexpected,
    restore: unexpected,
    delete: unexpected,
    readTagged: async (key) => objects.get(key) ?? null,
    replace: async (key, { bytes, tag }) => {
      if ((objects.get(key)?.tag ?? null) !== tag) return null
      version += 1
      objects.set(key, { bytes, tag: String(version) })
      return String(version)
    },
    [Symbol.asyncDispose]: async () => {},
  }
}
