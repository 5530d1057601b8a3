import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { deleteExpiredRows } from '../../src/tenancy/sign-in/expired-row-store.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { startIdentityProvider } from '../harness/sign-in/identity-provider.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const provider = await startIdentityProvider()
after(() => provider[Symbol.asyncDispose]())
const time = manualClock()
const annals = await startTestApp({
  role: 'api',
  clock: time.clock,
  env: { ...provider.env, ANNALS_TRUSTED_PROXIES: '127.0.0.1/32' },
})
after(() => annals[Symbol.asyncDispose]())

const tokenRequests = () => provider.counts.get('/token') ?? 0

/** Starts a sign-in from the address. Null if the address has started too many. */
async function start(address: string): Promise<{ cookie: string; state: string } | null> {
  const response = await annals.call('POST', '/dashboard/oidc/start', {
    body: {},
    headers: { 'sec-fetch-site': 'same-origin', 'x-forwarded-for': address },
  })
  if (response.status === 429) return null
  assert.equal(response.status, 200, response.text)
  const cookie = response.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
  return { cookie, state: new URL(response.json.url).searchParams.get('state') ?? '' }
}

/** Returns with a code that the provider never issued. */
async function returnWith({ cookie, state }: { cookie: string; state: string }, address: string) {
  const iss = encodeURIComponent(provider.issuer)
  const path = `/dashboard/oidc/callback?code=guess&state=${state}&iss=${iss}`
  const response = await fetch(`${annals.url}${path}`, {
    headers: { cookie, 'x-forwarded-for': address },
    redirect: 'manual',
  })
  await response.arrayBuffer()
  return response.headers.get('location')?.split('#')[1] ?? String(response.status)
}

test('a stranger can start and fail 50 sign-ins at once, and then 30 per minute', async () => {
  const address = '192.0.2.1'
  const outcomes: string[] = []
  for (let tries = 0; tries < 60; tries += 1) {
    const pending = await start(address)
    outcomes.push(pending ? await returnWith(pending, address) : 'not started')
  }
  assert.deepEqual(
    outcomes,
    Array.from({ length: 60 }, (_, nth) => (nth < 50 ? 'sign-in=invalid' : 'not started')),
  )
  assert.equal(tokenRequests(), 50)
  time.advance(60_000)
  const later = await Promise.all(Array.from({ length: 40 }, () => start(address)))
  assert.equal(later.filter((pending) => pending !== null).length, 30)
})

test('strangers from many addresses make a node ask the provider a bounded number of times', async () => {
  time.advance(60_000)
  const before = tokenRequests()
  const outcomes = await Promise.all(
    Array.from({ length: 130 }, async (_, nth) => {
      const address = `198.51.100.${nth}`
      const pending = await start(address)
      assert(pending)
      return await returnWith(pending, address)
    }),
  )
  const countOf = (name: string) => outcomes.filter((outcome) => outcome === name).length
  // On a busy machine, some also wait too long.
  const busy = countOf('sign-in=busy')
  assert(busy >= 30 && busy < 130, outcomes.join())
  assert.equal(countOf('sign-in=invalid'), 130 - busy)
  assert.equal(tokenRequests() - before, 130 - busy)
  // The metadata is read once.
  assert.equal(provider.counts.get('/.well-known/openid-configuration'), 1)
})

test('used sign-ins are deleted when they expire', async () => {
  const { db } = annals.app.database
  const count = async () =>
    (await db.selectFrom('used_sign_in').select('expires_at').execute()).length
  assert.equal(await count(), 180)
  const sweep = () =>
    deleteExpiredRows(db, 'used_sign_in', { now: new Date(time.clock()), limit: 100 })
  assert.equal(await sweep(), 0)
  time.advance(10 * 60_000)
  assert.deepEqual([await sweep(), await sweep(), await count()], [100, 80, 0])
})
