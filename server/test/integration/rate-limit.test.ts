import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createKeyText } from '../../src/tenancy/key/key-text.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const { clock, advance } = manualClock()
// Time stands still unless a test moves it, so no token is refilled.
const annals = await startTestApp({ clock, env: { ANNALS_TRUSTED_PROXIES: '127.0.0.1' } })
const unlimited = await startTestApp({ clock, env: { ANNALS_RATE_LIMITS: 'off' } })
after(async () => {
  await annals[Symbol.asyncDispose]()
  await unlimited[Symbol.asyncDispose]()
})

const status = (key: string, headers: Record<string, string> = {}) =>
  annals.call('GET', '/v1/keys/status', { key, headers })

const limitsOf = (headers: Headers) =>
  ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'].map((name) => headers.get(name))

/** Uses up this many tokens with few calls: one per event. */
async function spend(key: string, tokens: number): Promise<void> {
  for (let left = tokens; left > 0; left -= 500) {
    assert.equal((await sendBatch(key, Math.min(left, 500))).status, 200)
  }
}

/** Sends this many calls, a hundred at a time. Returns how many were accepted. */
async function countAllowed(app: typeof annals, key: string, calls: number): Promise<number> {
  let allowed = 0
  for (let sent = 0; sent < calls; sent += 100) {
    const responses = await Promise.all(
      Array.from({ length: Math.min(100, calls - sent) }, () =>
        app.call('GET', '/v1/keys/status', { key }),
      ),
    )
    for (const { status: code } of responses) assert(code === 200 || code === 429, String(code))
    allowed += responses.filter(({ status: code }) => code === 200).length
  }
  return allowed
}

// The last 100 tokens of a plan are used up by calls, and those before by the events of a few calls.
for (const [plan, perSecond] of [
  ['FREE', 50],
  ['STARTER', 200],
  ['PRO', 2_000],
] as const) {
  test(`a ${plan} key can call ${perSecond} times per second, and again in the next second`, async () => {
    const { workspaceKey, companyKey } = await annals.createCompany({ plan })
    const calls = Math.min(perSecond, 100)
    await spend(workspaceKey, perSecond - calls)
    assert.equal(await countAllowed(annals, workspaceKey, calls + 20), calls)
    assert.equal((await status(companyKey)).status, 200, 'each key has its own bucket')
    advance(1_000)
    const { headers } = await status(workspaceKey)
    assert.equal(headers.get('ratelimit-remaining'), String(perSecond - 1), 'the bucket is full')
  })
}

test('all keys of a company together can call ten times as often as one of them', async () => {
  const company = await annals.createCompany({ plan: 'FREE' })
  const owner = await signInAs(annals, company, 'OWNER')
  const body = { name: 'One of many', scope: 'COMPANY' }
  for (let nth = 0; nth < 10; nth += 1) {
    const { json } = await owner.call('POST', '/dashboard/keys', { body })
    assert.equal(await countAllowed(annals, json.secret, 50), 50)
  }
  const refused = await status(company.workspaceKey)
  assert.deepEqual([refused.status, refused.json.code], [429, 'rate_limited'])
  assert.deepEqual(limitsOf(refused.headers), ['500', '0', '1'])
  const other = await annals.createCompany({ plan: 'FREE' })
  assert.equal((await status(other.workspaceKey)).status, 200, 'another company is not affected')
  advance(1_000)
  assert.equal((await status(company.workspaceKey)).status, 200)
})

test('a batch that exceeds the tokens of the company costs its key one token', async () => {
  const company = await annals.createCompany({ plan: 'FREE' })
  const owner = await signInAs(annals, company, 'OWNER')
  const body = { name: 'Second', scope: 'WORKSPACE', workspaceId: company.workspace.id }
  const { json } = await owner.call('POST', '/dashboard/keys', { body })
  assert.equal((await sendBatch(company.workspaceKey, 400)).status, 200)
  const refused = await sendBatch(json.secret, 500)
  assert.deepEqual([refused.status, refused.headers.get('ratelimit-limit')], [429, '500'])
  const { headers } = await status(json.secret)
  assert.deepEqual(limitsOf(headers), ['50', '48', '1'])
})

test('an ENTERPRISE key has no limit and no rate limit headers', async () => {
  const { workspaceKey } = await annals.createCompany({ plan: 'ENTERPRISE' })
  assert.equal(await countAllowed(annals, workspaceKey, 500), 500)
  const { headers } = await status(workspaceKey)
  assert.equal(headers.get('ratelimit-limit'), null)
})

test('every response says what is left, and a rejection says when to retry', async () => {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'FREE' })
  const first = await status(key)
  assert.deepEqual(limitsOf(first.headers), ['50', '49', '1'])
  const refused = await annals.call('POST', '/v1/keys/any/rotate', { key })
  assert.deepEqual([refused.status, ...limitsOf(refused.headers)], [403, '50', '48', '1'])
  await countAllowed(annals, key, 48)
  const limited = await status(key)
  assert.deepEqual([limited.status, limited.json.code], [429, 'rate_limited'])
  assert.deepEqual(limitsOf(limited.headers), ['50', '0', '1'])
  assert.equal(limited.headers.get('retry-after'), '1')
  assert.equal(limited.json.traceId, limited.headers.get('x-trace-id'))
  advance(20)
  assert.equal((await status(key)).status, 200, 'one token is back after a fiftieth of a second')
  assert.equal((await status(key)).status, 429)
})

const sendBatch = (key: string, count: number) =>
  annals.call('POST', '/v1/events/batch', {
    key,
    body: { events: Array.from({ length: count }, () => ({ category: 'c', action: 'a' })) },
  })

for (const [plan, perSecond, counts] of [
  ['FREE', 50, [50, 51, 60, 500]],
  ['STARTER', 200, [201, 500]],
] as const) {
  for (const count of counts) {
    test(`a ${plan} key with a full bucket can send ${count} events, and again after Retry-After`, async () => {
      const { workspaceKey: key } = await annals.createCompany({ plan })
      const first = await sendBatch(key, count)
      assert.equal(first.status, 200, first.text)
      const debtPaidSeconds = Math.ceil(count / perSecond)
      const spent = [String(perSecond), '0', String(debtPaidSeconds)]
      assert.deepEqual(limitsOf(first.headers), spent)
      const refused = await sendBatch(key, count)
      assert.deepEqual([refused.status, ...limitsOf(refused.headers)], [429, ...spent])
      assert.equal(refused.headers.get('retry-after'), String(debtPaidSeconds))
      advance(debtPaidSeconds * 1_000)
      const second = await sendBatch(key, count)
      assert.equal(second.status, 200, second.text)
      assert.deepEqual(limitsOf(second.headers), spent)
    })
  }
}

test('a batch above the limit waits for a full bucket and costs one token if rejected', async () => {
  const { workspaceKey: key } = await annals.createCompany({ plan: 'FREE' })
  assert.equal((await status(key)).status, 200)
  const refused = await sendBatch(key, 60)
  assert.deepEqual([refused.status, ...limitsOf(refused.headers)], [429, '50', '48', '1'])
  assert.equal(refused.headers.get('retry-after'), '1')
  advance(1_000)
  const passed = await sendBatch(key, 60)
  assert.deepEqual([passed.status, ...limitsOf(passed.headers)], [200, '50', '0', '2'])
})

test('ANNALS_RATE_LIMITS=off turns every limit off', async () => {
  const { workspaceKey } = await unlimited.createCompany({ plan: 'FREE' })
  assert.equal(await countAllowed(unlimited, workspaceKey, 300), 300)
  for (let call = 0; call < 300; call++) {
    const { status: code } = await unlimited.call('GET', '/v1/keys/status', { key: 'wrong' })
    assert.equal(code, 401)
  }
})

test('failed authentications are limited by address, and a known key still works from there', async () => {
  const { workspaceKey } = await annals.createCompany()
  assert.equal((await status(workspaceKey)).status, 200)
  const scanner = { 'x-forwarded-for': '198.51.100.7' }
  const codes = new Map<string, number>()
  for (let call = 0; call < 230; call++) {
    const key = call % 2 === 0 ? createKeyText().text : 'nonsense'
    const { json, headers } = await status(key, scanner)
    codes.set(json.code, (codes.get(json.code) ?? 0) + 1)
    if (json.code === 'rate_limited') assert(Number(headers.get('retry-after')) >= 1)
  }
  assert.deepEqual(Object.fromEntries(codes), { invalid_api_key: 200, rate_limited: 30 })
  assert.equal((await status(workspaceKey, scanner)).status, 200)
  const neighbor = await status('nonsense', { 'x-forwarded-for': '198.51.100.8' })
  assert.equal(neighbor.json.code, 'invalid_api_key', 'another address is not affected')
  advance(1_000)
  assert.equal((await status('nonsense', scanner)).json.code, 'invalid_api_key')
})

test('changing the address within an IPv6 network gains no attempts', async () => {
  const codes: string[] = []
  for (let call = 0; call < 210; call++) {
    const { json } = await status('nonsense', { 'x-forwarded-for': `2001:db8:1:2::${call + 1}` })
    codes.push(json.code)
  }
  assert.equal(codes.filter((code) => code === 'invalid_api_key').length, 200)
  const elsewhere = await status('nonsense', { 'x-forwarded-for': '2001:db8:1:3::1' })
  assert.equal(elsewhere.json.code, 'invalid_api_key', 'the next network is not affected')
})
