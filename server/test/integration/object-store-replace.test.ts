import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { newId } from '../../src/platform/id.ts'
import {
  type ObjectStore,
  REPLACED_BYTES_MAX,
  StorageError,
} from '../../src/platform/object-store/object-store.ts'
import { openObjectStore } from '../../src/platform/object-store/open-object-store.ts'
import { openBucket } from '../harness/archive/bucket.ts'

await using stack = new AsyncDisposableStack()
const s3 = await openBucket(stack)
const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'annals-replace-')))
const kept = stack.move()
after(() => kept.disposeAsync())

const STORES = {
  folder: () =>
    openObjectStore(pathToFileURL(folder.path).href, { s3Endpoint: null, s3Region: null }),
  S3: () =>
    openObjectStore(`s3://${s3.bucket}/replace`, { s3Endpoint: s3.endpoint, s3Region: null }),
}

const keyOf = () => `signer/${newId()}`
const text = async (store: ObjectStore, key: string) =>
  String((await store.readTagged(key))?.bytes ?? 'none')

for (const kind of ['folder', 'S3'] as const) {
  suite(`replacing an object in ${kind === 'folder' ? 'a folder' : 'S3'}`, () => {
    test('creates an object only if there is none', async () => {
      await using store = await STORES[kind]()
      const key = keyOf()
      assert.equal(await store.replace(key, { bytes: Buffer.from('no'), tag: 'other' }), null)
      assert.equal(await store.readTagged(key), null)
      const tag = await store.replace(key, { bytes: Buffer.from('first'), tag: null })
      assert.notEqual(tag, null)
      assert.equal(await store.replace(key, { bytes: Buffer.from('second'), tag: null }), null)
      assert.deepEqual(await store.readTagged(key), { bytes: Buffer.from('first'), tag })
    })

    test('replaces only the version that the writer has read', async () => {
      await using store = await STORES[kind]()
      const key = keyOf()
      const first = await store.replace(key, { bytes: Buffer.from('1'), tag: null })
      const second = await store.replace(key, { bytes: Buffer.from('2'), tag: first })
      assert.notEqual(second, null)
      assert.equal(await store.replace(key, { bytes: Buffer.from('3'), tag: first }), null)
      assert.equal(await text(store, key), '2')
      assert.notEqual(await store.replace(key, { bytes: Buffer.from('3'), tag: second }), null)
      assert.equal(await text(store, key), '3')
    })

    test('of many writers with the same version, one succeeds', async () => {
      await using one = await STORES[kind]()
      await using other = await STORES[kind]()
      const key = keyOf()
      let tag = await one.replace(key, { bytes: Buffer.from('start'), tag: null })
      for (let round = 0; round < 5; round += 1) {
        const writers = Array.from({ length: 8 }, async (_, nth) => {
          const bytes = Buffer.from(`${round}.${nth}`)
          const won = await (nth % 2 === 0 ? one : other).replace(key, { bytes, tag })
          return won === null ? [] : [{ won, nth }]
        })
        const [winner, ...others] = (await Promise.all(writers)).flat()
        assert(winner && others.length === 0, 'exactly one writer wins')
        assert.equal(await text(other, key), `${round}.${winner.nth}`)
        tag = winner.won
      }
    })

    test('neither reads nor replaces an object that is larger than any that it wrote', async () => {
      await using store = await STORES[kind]()
      const key = keyOf()
      const largest = Buffer.alloc(REPLACED_BYTES_MAX, 'x')
      const tag = await store.replace(key, { bytes: largest, tag: null })
      assert.deepEqual(await store.readTagged(key), { bytes: largest, tag })
      const larger = Buffer.alloc(REPLACED_BYTES_MAX + 1, 'x')
      await store.put(key, larger)
      await assert.rejects(
        store.readTagged(key),
        (error) => error instanceof StorageError && error.isTooLarge,
      )
      for (const other of [tag, null]) {
        assert.equal(await store.replace(key, { bytes: Buffer.from('small'), tag: other }), null)
      }
      assert.deepEqual(await store.stat(key), { bytes: larger.length, readiness: 'ready' })
    })

    test('throws for an object that is too large to be replaced', async () => {
      await using store = await STORES[kind]()
      const bytes = Buffer.alloc(REPLACED_BYTES_MAX + 1)
      await assert.rejects(store.replace(keyOf(), { bytes, tag: null }), assert.AssertionError)
    })
  })
}
