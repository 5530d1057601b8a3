import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/harness/timing/clock.ts'
import { newId } from '../../platform/id.ts'
import type { StoredKey } from '../../tenancy/key/key-store.ts'
import { KeyCache } from './key-cache.ts'

const KEY: StoredKey = {
  id: newId(),
  kid: 'real',
  name: 'Key',
  secretHash: Buffer.alloc(32),
  scope: 'COMPANY',
  companyId: newId(),
  workspaceId: null,
  createdAt: new Date(0),
  expiresAt: null,
  graceUntil: null,
  revokedAt: null,
  permissions: null,
  plan: 'FREE',
  allowlist: [],
  allowlistForAllCalls: false,
  systemWorkspaceId: newId(),
}

test('a flood of invented keys evicts no key that exists, and takes bounded memory', async () => {
  const { clock, advance } = manualClock(0)
  const reads: string[] = []
  const cache = new KeyCache(async (kid) => {
    reads.push(kid)
    return kid === KEY.kid ? KEY : null
  }, clock)
  await cache.find(KEY.kid)
  for (let nth = 0; nth < 20_000; nth += 1) assert.equal(await cache.find(`invented-${nth}`), null)
  assert(cache.peek(KEY.kid))
  assert.equal(reads.filter((kid) => kid === KEY.kid).length, 1)
  // The newest are remembered, the oldest are not.
  reads.length = 0
  await cache.find('invented-19999')
  await cache.find('invented-0')
  assert.deepEqual(reads, ['invented-0'])
  advance(2_000)
  assert(await cache.find(KEY.kid))
})

test('a key that was created after a lookup is found, and then stays', async () => {
  const { clock, advance } = manualClock(0)
  let stored: StoredKey | null = null
  const cache = new KeyCache(async (kid) => (kid === KEY.kid ? stored : null), clock)
  assert.equal(await cache.find(KEY.kid), null)
  stored = KEY
  advance(2_000)
  assert(await cache.find(KEY.kid))
  for (let nth = 0; nth < 20_000; nth += 1) await cache.find(`invented-${nth}`)
  assert(cache.peek(KEY.kid))
})
