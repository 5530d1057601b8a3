import { archiveMarkerKey, type ObjectStore, StorageError } from './object-store.ts'

/**
 * Wraps a store so that it reports an object as missing or deleted only if the storage is the archive of
 * this database. Otherwise the empty mount point of an unmounted disk would look like an archive that lost all of its
 * segments. Before the first segment there is no archive id, and any storage is accepted, even a folder that
 * the first write will create.
 */
export function knownArchive(
  store: ObjectStore,
  { url, readArchiveId }: { url: string; readArchiveId: () => Promise<string | null> },
): ObjectStore {
  const unlessUnknown = async <T>(
    key: string,
    found: T | null,
    signal: AbortSignal | undefined,
  ): Promise<T | null> => {
    if (found !== null) return found
    const archiveId = await readArchiveId()
    if (archiveId === null) return null
    const marker = archiveMarkerKey(archiveId)
    // Archivers look up the marker themselves, and have their own error message.
    if (key === marker || (await store.stat(marker, signal)) !== null) return null
    throw new StorageError(
      `${url} has neither ${key} nor ${marker}, the marker file of this database's archive. Check that its disk is mounted and that ANNALS_ARCHIVE_URL is right.`,
      { summary: 'The storage of the archive is not available.' },
    )
  }
  const unlessNew = async <T>(found: Promise<T | null>): Promise<T | null> => {
    try {
      return await found
    } catch (error) {
      const isAbsent = error instanceof StorageError && error.isAbsent
      if (!isAbsent || (await readArchiveId()) !== null) throw error
      return null
    }
  }
  return {
    ...store,
    read: async (key, signal) =>
      await unlessUnknown(key, await unlessNew(store.read(key, signal)), signal),
    readTagged: async (key, signal) =>
      await unlessUnknown(key, await unlessNew(store.readTagged(key, signal)), signal),
    readRange: async (key, start, end, signal) =>
      await unlessUnknown(key, await unlessNew(store.readRange(key, start, end, signal)), signal),
    // An unmounted disk must not get a new object that looks like the first one of its key.
    replace: async (key, write, signal) => {
      if (write.tag === null) await unlessUnknown(key, null, signal)
      return await store.replace(key, write, signal)
    },
    // A missing object counts as deleted, so make sure that the storage isn't just unreachable.
    delete: async (key, signal) => {
      const found = await unlessUnknown(key, await unlessNew(store.stat(key, signal)), signal)
      if (found !== null) await store.delete(key, signal)
    },
    list: async (prefix, page, signal) => {
      const found = await unlessNew(store.list(prefix, page, signal))
      if (found && found.keys.length > 0) return found
      await unlessUnknown(prefix, null, signal)
      return found ?? { keys: [], cursor: null }
    },
    stat: async (key, signal) =>
      await unlessUnknown(key, await unlessNew(store.stat(key, signal)), signal),
  }
}
