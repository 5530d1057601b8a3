import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { memoryStore } from '../../../test/harness/memory-store.ts'
import type { ObjectStore } from '../../platform/object-store/object-store.ts'
import { Secret } from '../../platform/secret/secret.ts'
import { DAY_MS } from '../../platform/time/time-units.ts'
import { listSigningKeys, loadSigningKeys } from './key-list.ts'
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
