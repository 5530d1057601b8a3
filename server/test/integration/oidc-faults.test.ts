import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { manualClock } from '../harness/timing/clock.ts'
import {
  createSigningKey,
  type Fault,
  startIdentityProvider,
  type TokenClaims,
} from '../harness/sign-in/identity-provider.ts'
import { OidcVisitor } from '../harness/sign-in/oidc-visitor.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const provider = await startIdentityProvider()
after(() => provider[Symbol.asyncDispose]())
const time = manualClock()
const annals = await startTestApp({
  role: 'api',
  clock: time.clock,
  env: { ...provider.env, ANNALS_RATE_LIMITS: 'off' },
})
after(() => annals[Symbol.asyncDispose]())
beforeEach(() => provider.setFault(null))

const ID = 'person'
const EMAIL = 'person@example.com'
await annals.createCompany({ email: EMAIL })
provider.people.set(ID, { email: EMAIL, email_verified: true })
const stranger = { email: 'stranger@example.com', email_verified: true }
provider.people.set('stranger', stranger)

/** The ID token contains everything, so that the provider isn't asked about the person. */
const known = { email: EMAIL, email_verified: true, groups: [] }
const HTML = { 'content-type': 'text/html' }

const visit = () => new OidcVisitor(annals, provider)
const failed = (problem: string) => `/app/explorer#sign-in=${problem}`
const tokenRequests = () => provider.counts.get('/token') ?? 0

/** A browser that returns from the provider, where the person signed in. */
async function returning(person = ID) {
  const browser = visit()
  return { browser, path: await browser.authorize(await browser.start(), person) }
}

async function assertRefused(browser: OidcVisitor, path: string, problem: string): Promise<void> {
  assert.deepEqual(await browser.finish(path), { status: 303, location: failed(problem) })
  assert.equal((await browser.session()).status, 401)
}

test('a sign-in works once, even if the browser keeps its cookie', async () => {
  const { browser, path } = await returning()
  const jar = new Map(browser.jar)
  assert.equal((await browser.finish(path)).location, '/app/explorer')
  assert.equal(browser.jar.has('annals_sign_in'), false)
  const before = tokenRequests()
  const copy = visit()
  for (const [name, value] of jar) copy.jar.set(name, value)
  await assertRefused(copy, path, 'sign_in_over')
  assert.equal(tokenRequests(), before)
})

test('of two callbacks of a sign-in at once, one signs in', async () => {
  const { browser, path } = await returning()
  const copy = visit()
  for (const [name, value] of browser.jar) copy.jar.set(name, value)
  const results = await Promise.all([browser.finish(path), copy.finish(path)])
  const locations = results.map(({ location }) => location ?? '').toSorted()
  assert.deepEqual(locations, ['/app/explorer', failed('sign_in_over')])
})

test('a callback without the cookie, or with the cookie of another browser, does not sign in', async () => {
  const { path } = await returning()
  const before = tokenRequests()
  await assertRefused(visit(), path, 'sign_in_over')
  const other = visit()
  await other.start()
  await assertRefused(other, path, 'sign_in_over')
  assert.equal(tokenRequests(), before)
})

test('a cookie that was changed, sent twice or kept for too long is ignored', async () => {
  const { browser, path } = await returning()
  const [name, value = ''] = [...browser.jar].find(([key]) => key === 'annals_sign_in') ?? ['']
  const last = value.at(-5) === 'A' ? 'B' : 'A'
  const changed = visit()
  changed.jar.set(name, `${value.slice(0, -5)}${last}${value.slice(-4)}`)
  await assertRefused(changed, path, 'sign_in_over')
  const twice = visit()
  twice.jar.set(name, `${value}; ${name}=${value}`)
  await assertRefused(twice, path, 'sign_in_over')
  time.advance(10 * 60_000)
  await assertRefused(browser, path, 'sign_in_over')
})

test('refuses a callback with a wrong or missing state', async () => {
  const { browser, path } = await returning()
  const jar = new Map(browser.jar)
  for (const state of ['state=other', '']) {
    await assertRefused(browser, path.replace(/state=[^&]+/, state), 'sign_in_over')
    for (const [name, value] of jar) browser.jar.set(name, value)
  }
})

test('the code of another sign-in is useless in this browser', async () => {
  const attacker = await returning('stranger')
  const victim = await returning()
  const code = /code=[^&]+/.exec(attacker.path)?.[0] ?? ''
  await assertRefused(victim.browser, victim.path.replace(/code=[^&]+/, code), 'invalid')
})

test('refuses a response that names another provider', async () => {
  const { browser, path } = await returning()
  assert.match(path, /[?&]iss=/)
  const other = path.replace(/iss=[^&]+/, `iss=${encodeURIComponent('https://evil.example')}`)
  await assertRefused(browser, other, 'invalid')
})

test('says so if the person or the provider cancels', async () => {
  const { browser, path } = await returning('nobody')
  assert.match(path, /error=access_denied/)
  await assertRefused(browser, path, 'denied')
})

const seconds = () => Math.floor(Date.now() / 1_000)
const FORGERIES: Record<string, (claims: TokenClaims) => object> = {
  'for another client': (claims) => ({ ...claims, aud: 'other' }),
  'for several clients and another one in charge': (claims) => ({
    ...claims,
    aud: [claims.aud, 'other'],
    azp: 'other',
  }),
  'for this client with another one in charge': (claims) => ({ ...claims, azp: 'other' }),
  'from another issuer': (claims) => ({ ...claims, iss: 'https://evil.example' }),
  'with another nonce': (claims) => ({ ...claims, nonce: 'other' }),
  'without a nonce': (claims) => ({ ...claims, nonce: undefined }),
  'that has expired': (claims) => ({ ...claims, iat: seconds() - 700, exp: seconds() - 60 }),
  'without an expiry': (claims) => ({ ...claims, exp: undefined }),
  'without a subject': (claims) => ({ ...claims, sub: undefined }),
  'from the future': (claims) => ({ ...claims, nbf: seconds() + 600 }),
  'with a subject that is too long': (claims) => ({ ...claims, sub: 'x'.repeat(300) }),
  'with a subject that cannot be stored': (claims) => ({ ...claims, sub: 'x\0y' }),
}
for (const [what, change] of Object.entries(FORGERIES)) {
  test(`refuses an ID token ${what}`, async () => {
    const { browser, path } = await returning()
    provider.forge((claims) => change({ ...claims, ...known }))
    await assertRefused(browser, path, 'invalid')
  })
}

test('accepts the same ID token without these faults', async () => {
  const { browser, path } = await returning()
  provider.forge((claims) => ({ ...claims, ...known }))
  assert.equal((await browser.finish(path)).location, '/app/explorer')
})

const hmac = createHmac('sha256', provider.env.ANNALS_OIDC_CLIENT_SECRET ?? '')
const SIGNATURES: Record<string, Parameters<typeof provider.forge>[1]> = {
  'without a signature': { header: { alg: 'none' }, signature: '' },
  'with the signature of another token': { signature: 'A'.repeat(86) },
  'signed with the client secret': {
    header: { alg: 'HS256' },
    signature: hmac.update('x').digest('base64url'),
  },
  'signed with another key': { key: createSigningKey() },
  'signed with another key of the same name': {
    key: { ...createSigningKey(), kid: provider.signingKey.kid },
  },
}
for (const [what, options] of Object.entries(SIGNATURES)) {
  test(`refuses an ID token ${what}`, async () => {
    const { browser, path } = await returning()
    provider.forge((claims) => ({ ...claims, ...known }), options)
    await assertRefused(browser, path, 'invalid')
  })
}

test('accepts a new key of the provider, and reads the keys at most every ten seconds', async () => {
  time.advance(60_000)
  const key = createSigningKey()
  provider.forge((claims) => ({ ...claims, ...known }), { key })
  const forged = await returning()
  await assertRefused(forged.browser, forged.path, 'invalid')
  const reads = () => provider.counts.get('/jwks') ?? 0
  const before = reads()
  const again = await returning()
  await assertRefused(again.browser, again.path, 'invalid')
  assert.equal(reads(), before)
  // The provider publishes the key.
  time.advance(11_000)
  provider.forge((claims) => ({ ...claims, ...known }), {
    key,
    published: [key, provider.signingKey],
  })
  const rotated = await returning()
  assert.equal((await rotated.browser.finish(rotated.path)).location, '/app/explorer')
  assert.equal(reads(), before + 1)
})

test('refuses a userinfo response about another person', async () => {
  const { browser, path } = await returning()
  provider.setFault(({ path: asked }) =>
    asked === '/me' ? Response.json({ sub: 'other', ...known }) : null,
  )
  await assertRefused(browser, path, 'invalid')
})

test('an address is verified only by the response that contains it', async () => {
  const { browser, path } = await returning()
  provider.forge((claims) => ({ ...claims, email: EMAIL }))
  await assertRefused(browser, path, 'unverified_email')
})

const huge = 'x'.repeat(300 * 1_024)
const challenge = { 'www-authenticate': `Bearer ${'a="'.repeat(4_000)}` }
const OUTAGES: Record<string, [problem: string, fault: Fault]> = {
  'is down': ['unavailable', () => Promise.reject(new Error('down'))],
  'answers with status 500': ['unavailable', () => new Response('oops', { status: 500 })],
  'sends too much': ['unavailable', () => Response.json({ huge })],
  'sends garbage': ['invalid', () => new Response('<html>', { headers: HTML })],
  'sends something else': ['invalid', () => Response.json([1, null])],
  'sends a long challenge': [
    'invalid',
    () => Response.json({ error: 'invalid_token' }, { status: 401, headers: challenge }),
  ],
  'sends large headers': ['unavailable', () => new Response('', { headers: { huge } })],
  'redirects elsewhere': ['invalid', () => Response.redirect('http://127.0.0.1:1/', 302)],
}
for (const [what, [problem, fault]] of Object.entries(OUTAGES)) {
  for (const at of ['/token', '/me']) {
    test(`a provider that ${what} at ${at} leads to a page that says so`, async () => {
      const { browser, path } = await returning()
      provider.setFault((request) => (request.path === at ? fault(request) : null))
      await assertRefused(browser, path, problem)
      provider.setFault(null)
      const next = await returning()
      assert.equal((await next.browser.finish(next.path)).location, '/app/explorer')
    })
  }
}

test('returns only to pages of the dashboard', async () => {
  for (const returnTo of ['//evil.example/app', 'https://evil.example/', '/dashboard/session']) {
    const { status, json } = await visit().call('POST', '/dashboard/oidc/start', {
      body: { returnTo },
    })
    assert.deepEqual([status, json.details?.[0]?.path], [400, '/returnTo'], returnTo)
  }
})

test('another site cannot start a sign-in', async () => {
  const { status, json } = await annals.call('POST', '/dashboard/oidc/start', {
    body: {},
    headers: { 'sec-fetch-site': 'cross-site' },
  })
  assert.deepEqual([status, json.code], [403, 'cross_site'])
})

test('the callback reads at most 4 kB, ignores unknown parameters, and has no HEAD', async () => {
  const { browser, path } = await returning()
  const long = await annals.call('GET', `/dashboard/oidc/callback?state=${'x'.repeat(4_096)}`)
  assert.deepEqual([long.status, long.json.code], [400, 'invalid_request'])
  assert.equal((await fetch(`${annals.url}${path}`, { method: 'HEAD' })).status, 405)
  const result = await browser.finish(`${path}&session_state=a&prompt=none`)
  assert.equal(result.location, '/app/explorer')
})

test('a callback that another site links to does not end a sign-in that is under way', async () => {
  const { browser, path } = await returning()
  const lured = await browser.finish('/dashboard/oidc/callback?code=a&state=b')
  assert.equal(lured.location, failed('sign_in_over'))
  assert.equal((await browser.finish(path)).location, '/app/explorer')
})
