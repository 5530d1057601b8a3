import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import {
  listSigningKeys,
  listUnannounced,
  loadSigningKeys,
  markAnnounced,
  rotateDerivedKey,
} from '../../src/outlet/proof/key-list/key-list.ts'
import type { KeySource } from '../../src/outlet/proof/key-list/key-list-copies.ts'
import { deriveSeed, signingKeyOf } from '../../src/outlet/proof/signing-key.ts'
import { type ObjectStore, StorageError } from '../../src/platform/object-store/object-store.ts'
import { Secret } from '../../src/platform/secret/secret.ts'
import { DAY_MS } from '../../src/platform/time/time-units.ts'
import { type KeyStores, openKeyStores } from '../harness/proof/key-stores.ts'

const secretKey = new Secret(randomBytes(32))
const [older, newer] = [new Secret(randomBytes(32)), new Secret(randomBytes(32))]
const derived: KeySource = { secretKey, configured: null, previous: null }
const textOf = (seed: Secret<Buffer>) => signingKeyOf(seed).publicKey.toString('base64')
const START_MS = Date.parse('2026-01-01T00:00:00Z')

/** The public keys that sign at this time. */
async function signersAt(stores: KeyStores, keySource: KeySource, days: number): Promise<string[]> {
  const keys = await loadSigningKeys({ ...stores, keySource }, () => START_MS + days * DAY_MS)
  return keys.map(({ publicKey }) => publicKey.toString('base64'))
}

test('without a configured key, the derived one signs, and is listed once', async () => {
  await using stores = await openKeyStores()
  const own = textOf(deriveSeed(secretKey, 0))
  for (const day of [0, 1, 400]) assert.deepEqual(await signersAt(stores, derived, day), [own])
  assert.deepEqual(await listSigningKeys({ ...stores, keySource: derived }), [
    { publicKey: own, from: '2026-01-01T00:00:00.000Z', to: null },
  ])
})

test('after a change, both keys sign for 30 days', async () => {
  await using stores = await openKeyStores()
  const before = { secretKey, configured: older, previous: null }
  const changed = { secretKey, configured: newer, previous: older }
  assert.deepEqual(await signersAt(stores, before, 0), [textOf(older)])
  assert.deepEqual(await signersAt(stores, changed, 10), [textOf(newer), textOf(older)])
  assert.deepEqual(await signersAt(stores, changed, 39), [textOf(newer), textOf(older)])
  assert.deepEqual(await signersAt(stores, changed, 41), [textOf(newer)])
  assert.deepEqual(await listSigningKeys({ ...stores, keySource: derived }), [
    { publicKey: textOf(older), from: '2026-01-01T00:00:00.000Z', to: '2026-02-10T00:00:00.000Z' },
    { publicKey: textOf(newer), from: '2026-01-11T00:00:00.000Z', to: null },
  ])
})

test('after a derived key is replaced with a configured one, both sign for 30 days', async () => {
  await using stores = await openKeyStores()
  const own = textOf(deriveSeed(secretKey, 0))
  const changed = { secretKey, configured: newer, previous: null }
  assert.deepEqual(await signersAt(stores, derived, 0), [own])
  assert.deepEqual(await signersAt(stores, changed, 10), [textOf(newer), own])
  assert.deepEqual(await signersAt(stores, changed, 41), [textOf(newer)])
})

test('a key that was replaced without the previous one stops signing at once', async () => {
  await using stores = await openKeyStores()
  await signersAt(stores, { secretKey, configured: older, previous: null }, 0)
  const changed = { secretKey, configured: newer, previous: null }
  assert.deepEqual(await signersAt(stores, changed, 1), [textOf(newer)])
  const [first] = await listSigningKeys({ ...stores, keySource: derived })
  assert.equal(first?.to, '2026-01-02T00:00:00.000Z')
})

test('two nodes that start at the same time list one key', async () => {
  await using stores = await openKeyStores()
  await Promise.all([signersAt(stores, derived, 0), signersAt(stores, derived, 0)])
  assert.equal((await listSigningKeys({ ...stores, keySource: derived })).length, 1)
})

test('after a rotation, the derived keys of both generations sign for 30 days', async () => {
  await using stores = await openKeyStores()
  const [first, second] = [0, 1].map((generation) => textOf(deriveSeed(secretKey, generation)))
  await signersAt(stores, derived, 0)
  const listed = await rotateDerivedKey(
    { ...stores, keySource: derived },
    () => START_MS + 10 * DAY_MS,
  )
  assert.deepEqual(listed, await listSigningKeys({ ...stores, keySource: derived }))
  assert.deepEqual(await signersAt(stores, derived, 10), [second, first])
  assert.deepEqual(await signersAt(stores, derived, 39), [second, first])
  assert.deepEqual(await signersAt(stores, derived, 41), [second])
  assert.deepEqual(await listSigningKeys({ ...stores, keySource: derived }), [
    { publicKey: first, from: '2026-01-01T00:00:00.000Z', to: '2026-02-10T00:00:00.000Z' },
    { publicKey: second, from: '2026-01-11T00:00:00.000Z', to: null },
  ])
})

test('several rotations keep each replaced key for its 30 days, up to a limit', async () => {
  await using stores = await openKeyStores()
  const keys = [3, 2, 1, 0].map((generation) => textOf(deriveSeed(secretKey, generation)))
  for (const day of [0, 1, 2]) {
    await rotateDerivedKey({ ...stores, keySource: derived }, () => START_MS + day * DAY_MS)
  }
  assert.deepEqual(await signersAt(stores, derived, 2), keys)
  assert.deepEqual(await signersAt(stores, derived, 31.5), keys.slice(0, 2))
  const rotate = rotateDerivedKey({ ...stores, keySource: derived }, () => START_MS + 3 * DAY_MS)
  await assert.rejects(rotate, /3 replaced keys still sign\. Try again after 2026-01-31T/)
  assert.equal((await listSigningKeys({ ...stores, keySource: derived })).length, 4)
})

test('a rotation whose response is lost replaces the key once', async () => {
  await using stores = await openKeyStores()
  await signersAt(stores, derived, 0)
  const { archive: store } = stores
  let isLost = false
  const archive: ObjectStore = {
    ...store,
    replace: async (key, write) => {
      const tag = await store.replace(key, write)
      if (isLost) return tag
      isLost = true
      return null
    },
  }
  await rotateDerivedKey({ ...stores, archive, keySource: derived }, () => START_MS)
  assert.equal((await listSigningKeys({ ...stores, keySource: derived })).length, 2)
})

test('a node with the old key signs with it until it expires, and changes nothing', async () => {
  await using stores = await openKeyStores()
  const before = { secretKey, configured: older, previous: null }
  await signersAt(stores, before, 0)
  await signersAt(stores, { secretKey, configured: newer, previous: older }, 1)
  const list = await listSigningKeys({ ...stores, keySource: derived })
  assert.deepEqual(await signersAt(stores, before, 2), [textOf(older)])
  await assert.rejects(signersAt(stores, before, 32), StorageError)
  assert.deepEqual(await listSigningKeys({ ...stores, keySource: derived }), list)
})

test('lists a key change until it is announced, but never the first key', async () => {
  await using stores = await openKeyStores()
  await signersAt(stores, derived, 0)
  assert.deepEqual(await listUnannounced({ ...stores, keySource: derived }), [])
  await rotateDerivedKey({ ...stores, keySource: derived }, () => START_MS)
  const [change, ...others] = await listUnannounced({ ...stores, keySource: derived })
  assert.deepEqual([change?.publicKey, others], [textOf(deriveSeed(secretKey, 1)), []])
  assert.equal(change?.previous?.publicKey, textOf(deriveSeed(secretKey, 0)))
  await markAnnounced({ ...stores, keySource: derived }, change?.publicKey ?? '')
  assert.deepEqual(await listUnannounced({ ...stores, keySource: derived }), [])
})
