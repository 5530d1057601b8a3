import { archiveUrlOf } from './archive-url-of.ts'
import type { Config } from './config.ts'
import { knownArchive } from './platform/object-store/known-archive.ts'
import { type ObjectStore, StorageError } from './platform/object-store/object-store.ts'
import { openObjectStore } from './platform/object-store/open-object-store.ts'
import { withDeadline } from './platform/time/deadline.ts'

/** How long shutdown waits if opening the storage hangs. */
const ARCHIVE_CLOSE_MS_MAX = 1_000

/**
 * The storage for archived segments. It opens on first use, so that the service accepts events while the
 * storage is down. Without an archive, every call fails with a `StorageError`.
 */
export function openArchive(
  config: Config,
  { readArchiveId }: { readArchiveId: () => Promise<string | null> },
): ObjectStore {
  return openArchiveAt(placeOfArchive(config), { readArchiveId })
}

/** Where the archive is. A thread can get it from another one. */
export type ArchivePlace = {
  url: string | null
  s3Endpoint: string | null
  s3Region: string | null
}

export function placeOfArchive(config: Config): ArchivePlace {
  const { s3Endpoint, s3Region } = config
  return { url: archiveUrlOf(config), s3Endpoint, s3Region }
}

export function openArchiveAt(
  place: ArchivePlace,
  { readArchiveId }: { readArchiveId: () => Promise<string | null> },
): ObjectStore {
  const { url } = place
  return url === null ? noArchive() : knownArchive(openLazily(url, place), { url, readArchiveId })
}

function noArchive(): ObjectStore {
  const fail = async (key: string): Promise<never> => {
    throw new StorageError(
      `The archive file ${key} can't be read: this node has no archive (ANNALS_ARCHIVE_URL is not set).`,
      { summary: `No archive is configured, so the archive file ${key} can't be read.` },
    )
  }
  return {
    put: fail,
    read: fail,
    readRange: fail,
    readTagged: fail,
    replace: fail,
    list: fail,
    stat: fail,
    restore: fail,
    delete: fail,
    [Symbol.asyncDispose]: async () => {},
  }
}

function openLazily(url: string, { s3Endpoint, s3Region }: ArchivePlace): ObjectStore {
  let opening: Promise<ObjectStore> | null = null
  const open = async (): Promise<ObjectStore> => {
    opening ??= openObjectStore(url, { s3Endpoint, s3Region })
    try {
      return await opening
    } catch (error) {
      // The next call retries.
      opening = null
      throw error
    }
  }
  return {
    put: async (key, bytes, signal) => (await open()).put(key, bytes, signal),
    read: async (key, signal) => (await open()).read(key, signal),
    readRange: async (key, start, end, signal) => (await open()).readRange(key, start, end, signal),
    readTagged: async (key, signal) => (await open()).readTagged(key, signal),
    replace: async (key, write, signal) => (await open()).replace(key, write, signal),
    list: async (prefix, page, signal) => (await open()).list(prefix, page, signal),
    stat: async (key, signal) => (await open()).stat(key, signal),
    restore: async (key, signal) => (await open()).restore(key, signal),
    delete: async (key, signal) => (await open()).delete(key, signal),
    [Symbol.asyncDispose]: async () => {
      if (!opening) return
      const late = () => new Error('the archive is still being opened')
      const opened = withDeadline(opening, { timeoutMs: ARCHIVE_CLOSE_MS_MAX, late })
      await (await opened.catch(() => null))?.[Symbol.asyncDispose]()
    },
  }
}
