import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { createKeyText } from '../../src/tenancy/key/key-text.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startTestApp } from '../harness/app/start-app.ts'

// Time stands still between the steps of a test, so no token comes back.
const { clock, advance } = manualClock()
const annals = await startTestApp({
  clock,
  env: { ANNALS_TRUSTED_PROXIES: '127.0.0.1' },
})
after(() => annals[Symbol.asyncDispose]())

const SESSION = '/dashboard/session'
const unknownCookie = () => `annals_session=${randomBytes(32).toString('base64url')}`
const from = (address: string, headers: Record<string, string> = {}) => ({
  headers: { ...headers, 'x-forwarded-for': address },
})

/** The code of a call, repeated while a busy machine delays the lookup so long that there is none. */
const codeOf = (call: () => Promise<{ json: { code: string } }>) =>
  eventually(
    async () => {
      const { code } = (await call()).json
      assert.notEqual(code, 'unavailable')
      return code
    },
    { timeoutMs: 60_000 },
  )

/** The codes of many calls, 50 at a time, and how often each came. */
async function flood(call: () => Promise<{ json: { code: string } }>, calls = 250) {
  const codes: string[] = []
  while (codes.length < calls) {
    codes.push(...(await Promise.all(Array.from({ length: 50 }, () => codeOf(call)))))
  }
  return Object.fromEntries(
    Map.groupBy(codes, String)
      .entries()
      .map(([code, all]) => [code, all.length]),
  )
}

test('rejects unknown session cookies after 200 per network, but never known members', async () => {
  const member = await signInAs(annals, await annals.createCompany(), 'OWNER')
  const address = '198.51.100.20'
  const asMember = () => annals.call('GET', SESSION, from(address, { cookie: member.cookie }))
  assert.equal((await asMember()).status, 200)
  const codes = await flood(() =>
    annals.call('GET', SESSION, from(address, { cookie: unknownCookie() })),
  )
  assert.deepEqual(codes, { not_signed_in: 200, rate_limited: 50 })
  const refused = await annals.call('GET', SESSION, from(address, { cookie: unknownCookie() }))
  assert(Number(refused.headers.get('retry-after')) >= 1)
  assert.equal((await asMember()).status, 200)
  const elsewhere = await annals.call(
    'GET',
    SESSION,
    from('198.51.100.21', { cookie: unknownCookie() }),
  )
  assert.equal(elsewhere.status, 401)
})

test('a session that ended is no longer known', async () => {
  const member = await signInAs(annals, await annals.createCompany(), 'OWNER')
  const address = '198.51.100.22'
  const asMember = () => annals.call('GET', SESSION, from(address, { cookie: member.cookie }))
  assert.equal((await asMember()).status, 200)
  await annals.app.database.db
    .deleteFrom('user_session')
    .where('user_id', '=', member.userId)
    .execute()
  assert.deepEqual(await flood(asMember), { not_signed_in: 200, rate_limited: 50 })
})

test('does not look up unknown keys of a network that has used up its failures', async () => {
  const { workspaceKey } = await annals.createCompany()
  const address = '198.51.100.23'
  const withKey = (key: string) => annals.call('GET', '/v1/keys/status', { key, ...from(address) })
  assert.equal((await withKey(workspaceKey)).status, 200)
  const codes = await flood(() => withKey(createKeyText().text))
  assert.deepEqual(codes, { invalid_api_key: 200, rate_limited: 50 })
  assert.equal((await withKey(workspaceKey)).status, 200)
  const { pool } = annals.app.database
  let lookups = 0
  const count = () => (lookups += 1)
  pool.on('acquire', count)
  await flood(() => withKey(createKeyText().text), 100)
  pool.off('acquire', count)
  assert(lookups < 50, `${lookups} lookups`)
})

test('does not reject a busy key because of bad keys from its network', async () => {
  const { workspaceKey } = await annals.createCompany()
  const address = '198.51.100.24'
  const withKey = (key: string) => annals.call('GET', '/v1/keys/status', { key, ...from(address) })
  assert.equal((await withKey(workspaceKey)).status, 200)
  // Old enough to be read again, and young enough to be served meanwhile.
  advance(1_500)
  await flood(() => withKey(createKeyText().text))
  for (let calls = 0; calls < 20; calls += 1) {
    const { status, text } = await withKey(workspaceKey)
    assert.equal(status, 200, text)
  }
})

test('lookups of unknown credentials take at most 4 connections of the pool', async () => {
  const { pool } = annals.app.database
  let takenMax = 0
  const count = () => (takenMax = Math.max(takenMax, pool.totalCount - pool.idleCount))
  pool.on('acquire', count)
  let calls = 0
  await flood(() => {
    calls += 1
    const address = `203.0.113.${calls % 200}`
    return annals.call('GET', SESSION, from(address, { cookie: unknownCookie() }))
  }, 150)
  pool.off('acquire', count)
  // One or two more belong to background work.
  assert(takenMax <= 8, `${takenMax} connections`)
})
