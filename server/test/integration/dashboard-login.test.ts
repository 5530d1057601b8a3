import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { pino } from 'pino'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { getSystemWorkspace } from '../../src/tenancy/workspace/workspace-store.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { callAs, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { cookieIn, enter, logIn } from '../harness/sign-in/login.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const PASSWORD = 'correct horse'
const { clock, advance } = manualClock()
const lines: string[] = []
const logger = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
// Time stands still unless a test moves it, so no attempt is refilled.
const annals = await startTestApp({
  clock,
  logger,
  env: { ANNALS_TRUSTED_PROXIES: '127.0.0.1' },
})
const unlimited = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(async () => {
  await annals[Symbol.asyncDispose]()
  await unlimited[Symbol.asyncDispose]()
})

/** The tests share a service, so each uses its own address. */
const from = (address: string) => ({ 'x-forwarded-for': address })

test('the right password opens a session and returns it', async () => {
  const company = await annals.createCompany()
  const response = await logIn(annals, company.user)
  assert.equal(response.status, 200)
  assert.deepEqual(Object.keys(response.json.user), ['id', 'email', 'role'])
  assert.equal(response.json.user.role, 'OWNER')
  const { json } = await callAs(annals, cookieIn(response))('GET', '/dashboard/session')
  assert.deepEqual(json, response.json)
  assert(!response.text.includes('argon2'))
})

test('email addresses match in any spelling', async () => {
  const { user } = await annals.createCompany()
  const response = await logIn(annals, { email: user.email.toUpperCase(), password: user.password })
  assert.equal(response.status, 200)
})

test('over http, the cookie is HttpOnly and SameSite', async () => {
  const { user } = await annals.createCompany()
  const { headers } = await logIn(annals, user)
  assert.match(
    headers.get('set-cookie') ?? '',
    /^annals_session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/,
  )
})

test('over https, the cookie is bound to this host and to TLS', async () => {
  await using secure = await startTestApp({ env: { ANNALS_PUBLIC_URL: 'https://a.example.com/' } })
  const { user } = await secure.createCompany()
  const response = await logIn(secure, user)
  assert.match(
    response.headers.get('set-cookie') ?? '',
    /^__Host-annals_session=[\w-]{43}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
  )
  const { status } = await callAs(secure, cookieIn(response))('GET', '/dashboard/session')
  assert.equal(status, 200)
  const plain = cookieIn(response).replace('__Host-', '')
  assert.equal((await callAs(secure, plain)('GET', '/dashboard/session')).status, 401)
})

test('every login creates a session and ends the one whose cookie was sent along', async () => {
  const company = await annals.createCompany()
  const planted = await signInAs(annals, company, 'VIEWER')
  const response = await logIn(annals, company.user, { cookie: planted.cookie })
  assert.equal(response.status, 200)
  assert.notEqual(cookieIn(response), planted.cookie)
  assert.equal((await planted.call('GET', '/dashboard/session')).status, 401)
  const again = await logIn(annals, company.user, { cookie: cookieIn(response) })
  assert.equal((await callAs(annals, cookieIn(response))('GET', '/dashboard/session')).status, 401)
  assert.equal((await callAs(annals, cookieIn(again))('GET', '/dashboard/session')).status, 200)
})

test('a failed login keeps the session whose cookie was sent along', async () => {
  const company = await annals.createCompany()
  const member = await signInAs(annals, company, 'VIEWER')
  const wrong = { email: company.user.email, password: 'wrong horse' }
  assert.equal((await logIn(annals, wrong, { cookie: member.cookie })).status, 401)
  assert.equal((await member.call('GET', '/dashboard/session')).status, 200)
})

test('a wrong password and an unknown account get the same response', async () => {
  const { user } = await annals.createCompany()
  const wrong = await logIn(annals, { email: user.email, password: 'wrong horse' })
  const unknown = await logIn(annals, { email: `x${user.email}`, password: 'wrong horse' })
  assert.equal(wrong.status, 401)
  assert.equal(wrong.json.error, 'The email address or password is wrong.')
  assert.deepEqual(comparable(unknown), comparable(wrong))
})

/** The parts of a response that must not depend on whether the account exists. */
function comparable({ status, headers, json }: TestResponse) {
  const names = [...headers.keys()].filter((name) => !['date', 'x-trace-id'].includes(name))
  return {
    status,
    body: { ...json, traceId: null },
    headers: names.map((name) => [name, headers.get(name)]),
  }
}

test('a wrong password and an unknown account take the same time', async () => {
  const { user } = await unlimited.createCompany()
  const known: number[] = []
  const unknown: number[] = []
  for (let round = 0; round < 15; round += 1) {
    known.push(await timeOf({ email: user.email, password: `wrong ${round}` }))
    unknown.push(await timeOf({ email: `x${round}${user.email}`, password: `wrong ${round}` }))
  }
  const ratio = median(unknown) / median(known)
  // Without hashing for unknown accounts, the ratio is below a tenth.
  assert(ratio > 0.5 && ratio < 2, `${median(unknown)} ms beside ${median(known)} ms`)
})

async function timeOf(credentials: { email: string; password: string }): Promise<number> {
  const startedMs = performance.now()
  assert.equal((await logIn(unlimited, credentials)).status, 401)
  return performance.now() - startedMs
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

const BAD_BODIES: readonly [what: string, body: unknown][] = [
  ['no password', { email: 'a@example.com' }],
  ['an unknown field', { email: 'a@example.com', password: 'x', remember: true }],
  ['a number', { email: 'a@example.com', password: 1234567890 }],
  ['an endless password', { email: 'a@example.com', password: 'x'.repeat(1_025) }],
  ['an endless address', { email: 'x'.repeat(255), password: 'x' }],
  ['a list', ['a@example.com', 'x']],
]
for (const [what, body] of BAD_BODIES) {
  test(`a login with ${what} gets a clear 400`, async () => {
    const { status, json } = await annals.call('POST', '/dashboard/session', { body })
    assert.equal(status, 400)
    assert.equal(json.code, 'invalid_request')
  })
}

test('unusual characters in a login are treated as an unknown account', async () => {
  for (const email of ["' or 1=1 --", 'a@b\u{202e}c', '%00', '<script>', ' ', '👍@example.com']) {
    const { status } = await logIn(annals, { email, password: '\u{fffd}👍' }, from('198.51.100.9'))
    assert.equal(status, 401)
  }
})

test('a page of another site cannot sign in', async () => {
  const { user } = await annals.createCompany()
  const send = (headers: Record<string, string>) =>
    annals.call('POST', '/dashboard/session', { body: user, headers })
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site', origin: annals.url },
  ]) {
    const { status, json, headers: sent } = await send(headers)
    assert.equal(status, 403, JSON.stringify(headers))
    assert.equal(json.code, 'cross_site')
    assert.equal(sent.get('set-cookie'), null)
  }
  for (const headers of [{}, { 'sec-fetch-site': 'same-origin' }, { origin: annals.url }]) {
    assert.equal((await send(headers)).status, 200, JSON.stringify(headers))
  }
})

test('checks ten wrong passwords from an address, then returns when to retry', async () => {
  const { user } = await annals.createCompany()
  const guess = (email: string, address: string) =>
    logIn(annals, { email, password: 'wrong horse' }, from(address))
  for (const email of [user.email, `x${user.email}`]) {
    for (let tries = 0; tries < 10; tries += 1) {
      assert.equal((await guess(email, '203.0.113.1')).status, 401)
    }
  }
  const refused = await guess(user.email, '203.0.113.1')
  assert.equal(refused.status, 429)
  assert.equal(refused.json.code, 'rate_limited')
  assert.equal(refused.headers.get('retry-after'), '60')
  assert.deepEqual(comparable(await guess(`x${user.email}`, '203.0.113.1')), comparable(refused))
  // The right password doesn't help from there, but its owner can still sign in from elsewhere.
  assert.equal((await logIn(annals, user, from('203.0.113.1'))).status, 429)
  assert.equal((await logIn(annals, user, from('203.0.113.2'))).status, 200)
  advance(60_000)
  assert.equal((await logIn(annals, user, from('203.0.113.1'))).status, 200)
})

test('many addresses together are bound by the limit of the account', async () => {
  const { user } = await annals.createCompany()
  const statuses: number[] = []
  for (let host = 1; host <= 40; host += 1) {
    const wrong = { email: user.email, password: 'wrong horse' }
    statuses.push((await logIn(annals, wrong, from(`198.18.0.${host}`))).status)
  }
  assert.equal(statuses.filter((status) => status === 401).length, 30)
  assert(statuses.slice(30).every((status) => status === 429))
})

test('an address cannot try account after account, and an IPv6 network counts as one address', async () => {
  const statuses: number[] = []
  for (let tries = 1; tries <= 60; tries += 1) {
    const unknown = { email: `nobody-${tries}@example.com`, password: 'wrong horse' }
    const address = `2001:db8:7:7::${tries.toString(16)}`
    statuses.push((await logIn(annals, unknown, from(address))).status)
  }
  assert.equal(statuses.filter((status) => status === 401).length, 50)
  assert(statuses.slice(50).every((status) => status === 429))
})

test('a login rejected by a full queue does not use up the attempts of its account', async () => {
  const { user } = await annals.createCompany()
  const guess = (email: string, address: string) =>
    logIn(annals, { email, password: 'wrong horse' }, from(address))
  const hosts = [...Array(60).keys()]
  // One is checked and 32 wait; later requests are rejected.
  const others = hosts.map((host) => guess(`other-${host}@example.com`, `198.19.0.${host}`))
  const own = hosts.slice(0, 30).map((host) => guess(user.email, `198.19.1.${host}`))
  await Promise.all(others)
  const responses = await Promise.all(own)
  const checked = responses.filter(({ status }) => status === 401).length
  assert.equal(responses.filter(({ status }) => status === 503).length, 30 - checked)
  assert(checked < 30, 'the queue was full')
  const statuses: number[] = []
  for (let host = 0; host < 31 - checked; host += 1) {
    statuses.push((await guess(user.email, `198.19.2.${host}`)).status)
  }
  assert.deepEqual(statuses, [...Array.from({ length: 30 - checked }, () => 401), 429])
})

test('correct passwords are never limited', async () => {
  const { user } = await annals.createCompany()
  for (let times = 0; times < 60; times += 1) {
    assert.equal((await logIn(annals, user, from('203.0.113.60'))).status, 200)
  }
})

test('no limit stops a login if rate limits are off', async () => {
  const { user } = await unlimited.createCompany()
  for (let tries = 0; tries < 12; tries += 1) {
    const wrong = { email: user.email, password: 'wrong horse' }
    assert.equal((await logIn(unlimited, wrong)).status, 401)
  }
  assert.equal((await logIn(unlimited, user)).status, 200)
})

test('a login is in the audit log of the company', async () => {
  const company = await annals.createCompany()
  const { cookie } = await enter(annals, company.user)
  const { json } = await callAs(annals, cookie)('GET', '/dashboard/sessions')
  const [entry, ...others] = await readAudit(annals, company)
  assert.deepEqual(others, [])
  assert.equal(entry?.action, 'LOGIN_SUCCEEDED')
  assert.deepEqual(entry?.resource, { type: 'session', id: json.sessions[0].id })
  assert.equal(entry?.actor.email, company.user.email)
  assert.equal(entry?.actor.role, 'OWNER')
  assert(!JSON.stringify(entry).includes(cookie.split('=')[1] ?? ''))
})

test('failed logins of an account are one audit entry per minute, with their number', async () => {
  const company = await annals.createCompany()
  const wrong = { email: company.user.email, password: 'wrong horse' }
  const failures = async () =>
    (await readAudit(annals, company)).map(({ metadata }) => metadata.attempts)
  await logIn(annals, wrong, from('192.0.2.1'))
  await eventually(async () => assert.deepEqual(await failures(), [1]))
  for (let tries = 0; tries < 5; tries += 1) await logIn(annals, wrong, from('192.0.2.2'))
  // The entry is written only after a minute.
  assert.deepEqual(await failures(), [1])
  advance(60_000)
  await eventually(async () => assert.deepEqual(await failures(), [1, 5]))
  const [, last] = await readAudit(annals, company)
  assert.equal(last?.action, 'LOGIN_FAILED')
  assert.equal(last?.resource.type, 'user')
  assert.deepEqual(last?.actor, { email: company.user.email })
  assert.deepEqual(last?.metadata, { attempts: 5, address: '192.0.2.2' })
  assert(!JSON.stringify(last).includes('wrong horse'))
  const { db } = annals.app.database
  const workspaceId = await getSystemWorkspace(db, company.company.id)
  assert.equal((await verifyChain(annals.app.database, annals.app.archive, workspaceId)).ok, true)
})

test('failed logins of the last minute are recorded at shutdown', async () => {
  const { clock: still } = manualClock()
  const short = await startTestApp({ clock: still })
  const company = await short.createCompany()
  const wrong = { email: company.user.email, password: 'wrong horse' }
  for (let tries = 0; tries < 3; tries += 1) await logIn(short, wrong)
  await using reader = await startTestApp({ databaseUrl: short.database.url })
  await short.app[Symbol.asyncDispose]()
  const entries = await readAudit(reader, company)
  const attempts = entries.map(({ metadata }) => metadata.attempts)
  assert.equal(
    attempts.reduce((sum, count) => sum + count, 0),
    3,
  )
  await short[Symbol.asyncDispose]()
})

test('failed logins without an account are logged without the typed address', async () => {
  const unknown = { email: 'ghost@example.com', password: 'wrong horse' }
  await logIn(annals, unknown, from('192.0.2.77'))
  await eventually(() => {
    const line = lines.find((text) => text.includes('login.refused') && text.includes('192.0.2.77'))
    assert.match(line ?? '', /"attempts":1/)
  })
  assert(!lines.join('').includes('ghost@'))
  assert(!lines.join('').includes('wrong horse'))
})

test('changing the password ends all other sessions and keeps the current one', async () => {
  const company = await annals.createCompany()
  const mine = await enter(annals, company.user)
  const other = await enter(annals, company.user)
  const body = { currentPassword: PASSWORD, newPassword: 'staple battery' }
  const { status, json } = await mine.call('POST', '/dashboard/password', { body })
  assert.equal(status, 200)
  assert.deepEqual(json, { endedSessions: 1 })
  assert.equal((await mine.call('GET', '/dashboard/session')).status, 200)
  assert.equal((await other.call('GET', '/dashboard/session')).status, 401)
  assert.equal((await logIn(annals, company.user)).status, 401)
  const changed = { email: company.user.email, password: 'staple battery' }
  assert.equal((await logIn(annals, changed)).status, 200)
  const entry = (await readAudit(annals, company)).find(
    ({ action }) => action === 'PASSWORD_CHANGED',
  )
  assert.equal(entry?.metadata.endedSessions, 1)
  assert(!JSON.stringify(entry).includes('battery'))
})

test('rejects a password that is too short, too common, the email address or the old one', async () => {
  const company = await annals.createCompany()
  const { call } = await enter(annals, company.user)
  const change = async (newPassword: string, currentPassword = PASSWORD) =>
    await call('POST', '/dashboard/password', { body: { currentPassword, newPassword } })
  const refusals = new Map([
    ['short', /at least 10 characters/],
    ['x1y2'.repeat(51), /more than 200/],
    ['password123', /most common/],
    [company.user.email, /email/],
    [PASSWORD, /the old one/],
  ])
  for (const [password, why] of refusals) {
    const { status, json } = await change(password)
    assert.equal(status, 400)
    assert.match(json.error, why)
    assert.equal(json.details[0].path, '/newPassword')
  }
  const { status, json } = await change('staple battery', 'wrong horse')
  assert.equal(status, 400)
  assert.deepEqual(json.details, [
    { path: '/currentPassword', message: 'is not your current password' },
  ])
  assert.equal((await logIn(annals, company.user)).status, 200)
})

test('a stolen session cannot guess the password any faster', async () => {
  const company = await annals.createCompany()
  const { call } = await enter(annals, company.user)
  const body = { currentPassword: 'wrong horse', newPassword: 'staple battery' }
  const statuses: number[] = []
  for (let tries = 0; tries < 12; tries += 1) {
    const headers = from('203.0.113.99')
    statuses.push((await call('POST', '/dashboard/password', { body, headers })).status)
  }
  assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 400), 429, 429])
})
