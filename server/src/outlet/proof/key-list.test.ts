import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { memoryStore } from '../../../test/harness/archive/memory-store.ts'
import { type ObjectStore, StorageError } from '../../platform/object-store/object-store.ts'
import { Secret } from '../../platform/secret/secret.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import {
  listSigningKeys,
  listUnannounced,
  loadSigningKeys,
  markAnnounced,
  rotateDerivedKey,
} from './key-list.ts'
import { deriveSeed, signingKeyOf } from './signing-key.ts'

const secretKey = new Secret(randomBytes(32))
const [older, newer] = [new Secret(randomBytes(32)), new Secret(randomBytes(32))]
const derived = { secretKey, configured: null, previous: null }
const textOf = (seed: Secret<Buffer>) => signingKeyOf(seed).publicKey.toString('base64')
const START_MS = Date.parse('2026-01-01T00:00:00Z')

/** The public keys that sign at this time. */
async function signersAt(
  store: ObjectStore,
  source: Parameters<typeof loadSigningKeys>[1],
  days: number,
): Promise<string[]> {
  const keys = await loadSigningKeys(store, source, () => START_MS + days * DAY_MS)
  return keys.map(({ publicKey }) => publicKey.toString('base64'))
}

test('without a configured key, the derived one signs, and is listed once', async () => {
  const store = memoryStore()
  const own = textOf(deriveSeed(secretKey, 0))
  for (const day of [0, 1, 400]) assert.deepEqual(await signersAt(store, derived, day), [own])
  assert.deepEqual(await listSigningKeys(store), [
    { publicKey: own, from: '2026-01-01T00:00:00.000Z', to: null },
  ])
})

test('after a change, both keys sign for 30 days', async () => {
  const store = memoryStore()
  const before = { secretKey, configured: older, previous: null }
  const changed = { secretKey, configured: newer, previous: older }
  assert.deepEqual(await signersAt(store, before, 0), [textOf(older)])
  assert.deepEqual(await signersAt(store, changed, 10), [textOf(newer), textOf(older)])
  assert.deepEqual(await signersAt(store, changed, 39), [textOf(newer), textOf(older)])
  assert.deepEqual(await signersAt(store, changed, 41), [textOf(newer)])
  assert.deepEqual(await listSigningKeys(store), [
    { publicKey: textOf(older), from: '2026-01-01T00:00:00.000Z', to: '2026-02-10T00:00:00.000Z' },
    { publicKey: textOf(newer), from: '2026-01-11T00:00:00.000Z', to: null },
  ])
})

test('after a derived key is replaced with a configured one, both sign for 30 days', async () => {
  const store = memoryStore()
  const own = textOf(deriveSeed(secretKey, 0))
  const changed = { secretKey, configured: newer, previous: null }
  assert.deepEqual(await signersAt(store, derived, 0), [own])
  assert.deepEqual(await signersAt(store, changed, 10), [textOf(newer), own])
  assert.deepEqual(await signersAt(store, changed, 41), [textOf(newer)])
})

test('a key that was replaced without the previous one stops signing at once', async () => {
  const store = memoryStore()
  await signersAt(store, { secretKey, configured: older, previous: null }, 0)
  const changed = { secretKey, configured: newer, previous: null }
  assert.deepEqual(await signersAt(store, changed, 1), [textOf(newer)])
  const [first] = await listSigningKeys(store)
  assert.equal(first?.to, '2026-01-02T00:00:00.000Z')
})

test('two nodes that start at the same time list one key', async () => {
  const store = memoryStore()
  await Promise.all([signersAt(store, derived, 0), signersAt(store, derived, 0)])
  assert.equal((await listSigningKeys(store)).length, 1)
})

test('after a rotation, the derived keys of both generations sign for 30 days', async () => {
  const store = memoryStore()
  const [first, second] = [0, 1].map((generation) => textOf(deriveSeed(secretKey, generation)))
  await signersAt(store, derived, 0)
  const listed = await rotateDerivedKey(store, secretKey, () => START_MS + 10 * DAY_MS)
  assert.deepEqual(listed, await listSigningKeys(store))
  assert.deepEqual(await signersAt(store, derived, 10), [second, first])
  assert.deepEqual(await signersAt(store, derived, 39), [second, first])
  assert.deepEqual(await signersAt(store, derived, 41), [second])
  assert.deepEqual(await listSigningKeys(store), [
    { publicKey: first, from: '2026-01-01T00:00:00.000Z', to: '2026-02-10T00:00:00.000Z' },
    { publicKey: second, from: '2026-01-11T00:00:00.000Z', to: null },
  ])
})

test('several rotations keep each replaced key for its 30 days, up to a limit', async () => {
  const store = memoryStore()
  const keys = [3, 2, 1, 0].map((generation) => textOf(deriveSeed(secretKey, generation)))
  for (const day of [0, 1, 2]) {
    await rotateDerivedKey(store, secretKey, () => START_MS + day * DAY_MS)
  }
  assert.deepEqual(await signersAt(store, derived, 2), keys)
  assert.deepEqual(await signersAt(store, derived, 31.5), keys.slice(0, 2))
  const rotate = rotateDerivedKey(store, secretKey, () => START_MS + 3 * DAY_MS)
  await assert.rejects(rotate, /3 replaced keys still sign\. Try again after 2026-01-31T/)
  assert.equal((await listSigningKeys(store)).length, 4)
})

test('concurrent rotations, or a lost response, replace the key once', async () => {
  const store = memoryStore()
  await signersAt(store, derived, 0)
  const rotate = () => rotateDerivedKey(store, secretKey, () => START_MS)
  await Promise.all([rotate(), rotate()])
  assert.equal((await listSigningKeys(store)).length, 2)
  let isLost = false
  const lossy: ObjectStore = {
    ...store,
    replace: async (key, write) => {
      const tag = await store.replace(key, write)
      if (isLost) return tag
      isLost = true
      return null
    },
  }
  await rotateDerivedKey(lossy, secretKey, () => START_MS)
  assert.equal((await listSigningKeys(store)).length, 3)
})

test('a node with the old key signs with it until it expires, and changes nothing', async () => {
  const store = memoryStore()
  const before = { secretKey, configured: older, previous: null }
  await signersAt(store, before, 0)
  await signersAt(store, { secretKey, configured: newer, previous: older }, 1)
  const list = await listSigningKeys(store)
  assert.deepEqual(await signersAt(store, before, 2), [textOf(older)])
  await assert.rejects(signersAt(store, before, 32), StorageError)
  assert.deepEqual(await listSigningKeys(store), list)
})

test('lists a key change until it is announced, but never the first key', async () => {
  const store = memoryStore()
  await signersAt(store, derived, 0)
  assert.deepEqual(await listUnannounced(store), [])
  await rotateDerivedKey(store, secretKey, () => START_MS)
  const [change, ...others] = await listUnannounced(store)
  assert.deepEqual([change?.publicKey, others], [textOf(deriveSeed(secretKey, 1)), []])
  assert.equal(change?.previous.publicKey, textOf(deriveSeed(secretKey, 0)))
  await markAnnounced(store, change?.publicKey ?? '')
  assert.deepEqual(await listUnannounced(store), [])
})
