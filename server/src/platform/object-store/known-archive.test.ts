import assert from 'node:assert/strict'
import { test } from 'node:test'
import { knownArchive } from './known-archive.ts'
import { archiveMarkerKey, type ObjectStore, StorageError } from './object-store.ts'

const ARCHIVE_ID = '0'.repeat(32)

/** A storage with these objects. */
function storageWith(keys: readonly string[]) {
  const objects = new Set(keys)
  const deleted: string[] = []
  const store: ObjectStore = {
    put: async (key) => void objects.add(key),
    stat: async (key) => (objects.has(key) ? { bytes: 1, readiness: 'ready' } : null),
    read: async (key) => (objects.has(key) ? Buffer.of(0) : null),
    readTagged: async (key) => (objects.has(key) ? { bytes: Buffer.of(0), tag: '' } : null),
    replace: async (key) => {
      objects.add(key)
      return ''
    },
    readRange: async (key) => (objects.has(key) ? Buffer.of(0) : null),
    list: async (prefix) => ({
      keys: [...objects].filter((key) => key.startsWith(prefix)),
      cursor: null,
    }),
    restore: async () => {},
    delete: async (key) => void deleted.push(key),
    [Symbol.asyncDispose]: async () => {},
  }
  const known = knownArchive(store, {
    url: 'file:///archive',
    readArchiveId: async () => ARCHIVE_ID,
  })
  return { known, deleted }
}

test('an object counts as missing or deleted only if the storage is the archive', async () => {
  const unmounted = storageWith([])
  await assert.rejects(unmounted.known.delete('exports/1'), StorageError)
  const archive = storageWith([archiveMarkerKey(ARCHIVE_ID), 'exports/1'])
  await archive.known.delete('exports/1')
  await archive.known.delete('exports/2')
  const write = { bytes: Buffer.of(0), tag: null }
  await assert.rejects(unmounted.known.replace('signer/keys', write), StorageError)
  await assert.rejects(unmounted.known.readTagged('signer/keys'), StorageError)
  assert.equal(await archive.known.replace('signer/keys', write), '')
  await assert.rejects(unmounted.known.list('signer/', { cursor: null, limit: 1 }), StorageError)
  const page = await archive.known.list('exports/', { cursor: null, limit: 1 })
  assert.deepEqual(page, { keys: ['exports/1'], cursor: null })
  assert.deepEqual([unmounted.deleted, archive.deleted], [[], ['exports/1']])
})
