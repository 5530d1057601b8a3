import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { deleteExpiredRows } from '../../src/tenancy/sign-in/expired-row-store.ts'
import { assertId, type UserId } from '../../src/platform/id.ts'
import { insertResetLink } from '../../src/tenancy/member/one-time-link-store.ts'
import { base32 } from '../../src/tenancy/sign-in/totp.ts'
import { findAccount } from '../../src/tenancy/member/user-store.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { callAs, type Member, readAudit } from '../harness/dashboard/dashboard.ts'
import { documented } from '../harness/openapi/documented.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { cookieIn, enter, logIn } from '../harness/sign-in/login.ts'
import { enableFactor, enterCode } from '../harness/sign-in/second-factor.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const STEP_MS = 30_000
const MINUTE_MS = 60_000
const { clock, advance } = manualClock()
// Time stands still unless a test moves it, so no attempt is refilled, and a code stays the current one.
const annals = await startTestApp({ clock, env: { ANNALS_TRUSTED_PROXIES: '127.0.0.1' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const from = (address: string) => ({ 'x-forwarded-for': address })

/** A company whose owner is signed in and has a second factor. Its code of the next step is not used. */
async function enrolledOwner() {
  const company = await annals.createCompany()
  const session = await enter(annals, company.user)
  const userId = await ownId(session.call)
  const { password } = company.user
  const app = await enableFactor(session.call, { password, nowMs: clock() })
  return { company, userId, ...session, app, nextCode: () => app.codeAt(clock() + STEP_MS) }
}

async function ownId(call: Member['call']): Promise<UserId> {
  return assertId((await call('GET', '/dashboard/session')).json.user.id)
}

async function countRows(table: 'user_session' | 'sign_in_challenge'): Promise<number> {
  const { rows } = await sql`select from ${sql.table(table)}`.execute(db)
  return rows.length
}

/** Enters the right password. */
async function challengeOf({ user }: CreatedCompany, headers = {}): Promise<string> {
  const { status, text, json, headers: sent } = await logIn(annals, user, headers)
  assert.equal(status, 202, text)
  assert.equal(sent.get('set-cookie'), null)
  return json.challenge
}

const actionsOf = async (company: CreatedCompany) =>
  (await readAudit(annals, company)).map(({ action }) => action)

test('a second factor is set up with the password and confirmed with a code', async () => {
  const company = await annals.createCompany()
  const { user } = company
  const { cookie, call } = await enter(annals, user)
  const other = await enter(annals, user)
  const member = await documented({ userId: await ownId(call), email: user.email, cookie, call })
  const start = (currentPassword: string) =>
    member.call('POST', '/dashboard/second-factor', { body: { currentPassword } })
  const confirm = (code: string) =>
    member.call('POST', '/dashboard/second-factor/confirm', { body: { code } })
  const before = await member.call('GET', '/dashboard/second-factor')
  assert.deepEqual(before.json, { enabledAt: null, recoveryCodesLeft: 0, isRequired: false })
  assert.equal((await confirm('123456')).status, 409)
  const wrong = await start('wrong horse')
  assert.equal(wrong.status, 400)
  assert.deepEqual(wrong.json.details[0].path, '/currentPassword')
  assert.equal((await start(user.password)).status, 201)
  // Nothing changes before the confirmation.
  assert.equal((await logIn(annals, user)).status, 200)
  assert.equal((await confirm('000000')).json.details[0].path, '/code')
  const app = await enableFactor(member.call, { password: user.password, nowMs: clock() })
  assert.equal(new Set(app.recoveryCodes).size, 10)
  const after = await member.call('GET', '/dashboard/second-factor')
  assert.deepEqual(after.json, {
    enabledAt: new Date(clock()).toISOString(),
    recoveryCodesLeft: 10,
    isRequired: false,
  })
  assert.equal((await start(user.password)).status, 409)
  assert.equal((await confirm(app.codeAt(clock() + STEP_MS))).status, 409)
  assert.equal((await other.call('GET', '/dashboard/session')).status, 401)
  assert.equal((await member.call('GET', '/dashboard/session')).status, 200)
  const entry = (await readAudit(annals, company)).at(-1)
  assert.equal(entry?.action, 'SECOND_FACTOR_ENABLED')
  assert.equal(entry.metadata.endedSessions, 2)
})

test('a secret that is not confirmed within an hour is useless', async () => {
  const { user } = await annals.createCompany()
  const { call } = await enter(annals, user)
  await call('POST', '/dashboard/second-factor', { body: { currentPassword: user.password } })
  advance(29 * MINUTE_MS)
  assert.equal((await call('GET', '/dashboard/session')).status, 200)
  advance(29 * MINUTE_MS)
  assert.equal((await call('GET', '/dashboard/session')).status, 200)
  advance(2 * MINUTE_MS)
  const { status } = await call('POST', '/dashboard/second-factor/confirm', {
    body: { code: '123456' },
  })
  assert.equal(status, 409)
})

test('the database contains neither the secret nor a code, and a copied secret is useless', async () => {
  const { company, userId, app } = await enrolledOwner()
  const other = await enrolledOwner()
  const { rows } = await sql<{ text: string }>`
    select f::text as text from second_factor f where user_id = ${userId}`.execute(db)
  const { text = '' } = rows[0] ?? {}
  assert(text.includes(userId))
  const secrets = [app.secret.toString('base64'), base32(app.secret), ...app.recoveryCodes]
  for (const hidden of [...secrets, ...app.recoveryCodes.map((code) => code.replaceAll('-', ''))]) {
    assert(!text.includes(Buffer.from(hidden).toString('hex')))
  }
  assert(!text.includes(app.secret.toString('hex')))
  const { secret } = await db
    .selectFrom('second_factor')
    .select('secret')
    .where('user_id', '=', other.userId)
    .executeTakeFirstOrThrow()
  await db.updateTable('second_factor').set({ secret }).where('user_id', '=', userId).execute()
  const challenge = await challengeOf(company)
  assert.equal((await enterCode(annals, { challenge, code: other.nextCode() })).status, 401)
})

test('sign-in needs the password and then a code, and opens no session before', async () => {
  const { company, nextCode } = await enrolledOwner()
  const wrong = await logIn(annals, { ...company.user, password: 'wrong horse' })
  assert.equal(wrong.status, 401)
  const sessions = await countRows('user_session')
  const response = await logIn(annals, company.user)
  assert.equal(response.status, 202)
  assert.deepEqual(Object.keys(response.json), ['challenge', 'expiresAt'])
  const { challenge, expiresAt } = response.json
  assert.equal(Date.parse(expiresAt), clock() + 5 * MINUTE_MS)
  assert.equal(await countRows('user_session'), sessions)
  const asCookie = callAs(annals, `annals_session=${challenge}`)
  assert.equal((await asCookie('GET', '/dashboard/session')).status, 401)
  const signedIn = await enterCode(annals, { challenge, code: nextCode() })
  assert.equal(signedIn.status, 200, signedIn.text)
  assert.equal(signedIn.json.user.email, company.user.email)
  const { json } = await callAs(annals, cookieIn(signedIn))('GET', '/dashboard/session')
  assert.deepEqual(json, signedIn.json)
  // The wrong password is reported in the background, at any time.
  const entries = (await readAudit(annals, company))
    .filter(({ action }) => action !== 'LOGIN_FAILED')
    .slice(-2)
  assert.deepEqual(
    entries.map(({ action, metadata }) => [action, metadata.secondFactor]),
    [
      ['SECOND_FACTOR_REQUESTED', undefined],
      ['LOGIN_SUCCEEDED', 'CODE'],
    ],
  )
})

test('a code works once, also for simultaneous sign-ins, and so do the codes before it', async () => {
  const { company, app, nextCode } = await enrolledOwner()
  const used = app.codeAt(clock())
  const challenge = await challengeOf(company)
  // It turned the second factor on.
  assert.equal((await enterCode(annals, { challenge, code: used })).status, 401)
  const challenges = [challenge, await challengeOf(company), await challengeOf(company)]
  const code = nextCode()
  const responses = await Promise.all(
    challenges.map((sent) => enterCode(annals, { challenge: sent, code })),
  )
  assert.deepEqual(
    responses.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 401, 401],
  )
  const late = await challengeOf(company)
  assert.equal((await enterCode(annals, { challenge: late, code })).status, 401)
})

test('clocks can differ by one step, and not by two', async () => {
  const { company, app } = await enrolledOwner()
  advance(10 * STEP_MS)
  const attempt = async (steps: number, address: string) => {
    const challenge = await challengeOf(company, from(address))
    const code = app.codeAt(clock() + steps * STEP_MS)
    return (await enterCode(annals, { challenge, code }, from(address))).status
  }
  assert.equal(await attempt(-2, '198.51.100.1'), 401)
  assert.equal(await attempt(2, '198.51.100.1'), 401)
  assert.equal(await attempt(-1, '198.51.100.1'), 200)
  assert.equal(await attempt(0, '198.51.100.1'), 200)
  assert.equal(await attempt(1, '198.51.100.1'), 200)
})

test('a challenge works once and expires after five minutes', async () => {
  const { company, app, nextCode } = await enrolledOwner()
  const used = await challengeOf(company)
  assert.equal((await enterCode(annals, { challenge: used, code: nextCode() })).status, 200)
  advance(STEP_MS)
  const again = await enterCode(annals, { challenge: used, code: nextCode() })
  assert.deepEqual([again.status, again.json.details[0].path], [401, '/challenge'])
  const expired = await challengeOf(company)
  const kept = await challengeOf(company)
  advance(5 * MINUTE_MS - 1)
  assert.equal(
    (await enterCode(annals, { challenge: kept, code: app.codeAt(clock()) })).status,
    200,
  )
  advance(1)
  const late = await enterCode(annals, { challenge: expired, code: nextCode() })
  assert.deepEqual([late.status, late.json.details[0].path], [401, '/challenge'])
  const unknown = await enterCode(annals, { challenge: 'x'.repeat(43), code: nextCode() })
  assert.deepEqual({ ...unknown.json, traceId: '' }, { ...late.json, traceId: '' })
})

test('a challenge from before the clock stepped back does not live longer', async () => {
  const { company, nextCode } = await enrolledOwner()
  const challenge = await challengeOf(company)
  advance(-60 * MINUTE_MS)
  const { status } = await enterCode(annals, { challenge, code: nextCode() })
  advance(60 * MINUTE_MS)
  assert.equal(status, 401)
})

test('expired challenges are deleted', async () => {
  const { company, nextCode } = await enrolledOwner()
  await challengeOf(company)
  advance(5 * MINUTE_MS)
  const open = await challengeOf(company)
  await deleteExpiredRows(db, 'sign_in_challenge', { now: new Date(clock()), limit: 1_000 })
  assert.equal(await countRows('sign_in_challenge'), 1)
  assert.equal((await enterCode(annals, { challenge: open, code: nextCode() })).status, 200)
})

test('a member has at most five challenges, and a new one ends the oldest', async () => {
  const { company, nextCode } = await enrolledOwner()
  const [oldest, second] = [await challengeOf(company), await challengeOf(company)]
  for (let more = 0; more < 4; more += 1) {
    advance(1)
    await challengeOf(company)
  }
  const statuses: number[] = []
  for (const challenge of [oldest, second]) {
    statuses.push((await enterCode(annals, { challenge, code: nextCode() })).status)
  }
  // Which of the two that were created at the same time ends first is open.
  assert.deepEqual(
    statuses.toSorted((a, b) => a - b),
    [200, 401],
  )
})

test('a new password ends open challenges', async () => {
  const { company, call, nextCode } = await enrolledOwner()
  const challenge = await challengeOf(company)
  const changed = await call('POST', '/dashboard/password', {
    body: { currentPassword: company.user.password, newPassword: 'staple battery' },
  })
  assert.equal(changed.status, 200)
  assert.equal((await enterCode(annals, { challenge, code: nextCode() })).status, 401)
})

test('after five wrong codes, the password is required again', async () => {
  await using unlimited = await startTestApp({
    clock,
    databaseUrl: annals.database.url,
    env: { ANNALS_RATE_LIMITS: 'off' },
  })
  const { company, nextCode } = await enrolledOwner()
  const challenge = await challengeOf(company)
  const paths: string[] = []
  for (let tries = 0; tries < 5; tries += 1) {
    const { status, json } = await enterCode(unlimited, { challenge, code: '000000' })
    assert.equal(status, 401)
    paths.push(json.details[0].path)
  }
  assert.deepEqual(paths, ['/code', '/code', '/code', '/code', '/challenge'])
  assert.equal((await enterCode(unlimited, { challenge, code: nextCode() })).status, 401)
  const next = await challengeOf(company)
  assert.equal((await enterCode(unlimited, { challenge: next, code: nextCode() })).status, 200)
})

test('wrong codes are limited per account and address, and per account', async () => {
  const { company, userId, nextCode } = await enrolledOwner()
  const guess = async (address: string, code = '000000') => {
    const challenge = await challengeOf(company, from(address))
    return await enterCode(annals, { challenge, code }, from(address))
  }
  const statusesFrom = async (address: string, times: number) => {
    const statuses: number[] = []
    for (let tries = 0; tries < times; tries += 1) statuses.push((await guess(address)).status)
    return statuses
  }
  assert.deepEqual(await statusesFrom('203.0.113.1', 6), [401, 401, 401, 401, 401, 429])
  const refused = await guess('203.0.113.1', nextCode())
  assert.equal(refused.status, 429)
  assert.equal(refused.headers.get('retry-after'), String(15 * 60))
  // The member signs in from elsewhere, and that costs nothing.
  assert.equal((await guess('203.0.113.2', nextCode())).status, 200)
  assert.deepEqual(await statusesFrom('203.0.113.3', 5), [401, 401, 401, 401, 401])
  assert.equal((await guess('203.0.113.4')).status, 429)
  // Another account is not affected, not even from the same address.
  const other = await enrolledOwner()
  const challenge = await challengeOf(other.company, from('203.0.113.1'))
  const allowed = await enterCode(
    annals,
    { challenge, code: other.nextCode() },
    from('203.0.113.1'),
  )
  assert.equal(allowed.status, 200)
  advance(15 * MINUTE_MS)
  assert.equal((await guess('203.0.113.1', nextCode())).status, 200)
  await eventually(async () => {
    const entries = await readAudit(annals, company)
    const failed = entries.filter(({ action }) => action === 'SECOND_FACTOR_FAILED')
    const attempts = failed.reduce((sum, { metadata }) => sum + metadata.attempts, 0)
    assert.equal(attempts, 10)
    assert.deepEqual(failed[0]?.resource, { type: 'user', id: userId })
    assert.equal(failed[0]?.actor.id, undefined)
  })
})

test('unknown challenges are limited per address', async () => {
  const statuses = new Set<number>()
  for (let tries = 0; tries < 51; tries += 1) {
    const body = { challenge: `unknown-${tries}`, code: '000000' }
    statuses.add((await enterCode(annals, body, from('203.0.113.77'))).status)
  }
  assert.deepEqual([...statuses], [401, 429])
})

test('each recovery code signs in once, in any spelling', async () => {
  const { company, app } = await enrolledOwner()
  const [first = '', second = ''] = app.recoveryCodes
  const use = async (code: string) =>
    (await enterCode(annals, { challenge: await challengeOf(company), code })).status
  assert.equal(await use(first), 200)
  assert.equal(await use(first), 401)
  assert.equal(await use(` ${second.toLowerCase().replaceAll('-', ' ')}`), 200)
  const entries = await readAudit(annals, company)
  const entry = entries.findLast(({ action }) => action === 'LOGIN_SUCCEEDED')
  assert.deepEqual(
    [entry?.metadata.secondFactor, entry?.metadata.recoveryCodesLeft],
    ['RECOVERY_CODE', 8],
  )
})

test('new recovery codes replace the old ones', async () => {
  const { company, call, app, nextCode } = await enrolledOwner()
  const create = (currentPassword: string, code: string) =>
    call('POST', '/dashboard/second-factor/recovery-codes', { body: { currentPassword, code } })
  const { password } = company.user
  assert.equal((await create('wrong horse', nextCode())).json.details[0].path, '/currentPassword')
  assert.equal((await create(password, '000000')).json.details[0].path, '/code')
  const created = await create(password, nextCode())
  assert.equal(created.status, 201, created.text)
  const [old = ''] = app.recoveryCodes
  const [fresh = ''] = created.json.recoveryCodes
  const use = async (code: string) =>
    (await enterCode(annals, { challenge: await challengeOf(company), code })).status
  assert.equal(await use(old), 401)
  assert.equal(await use(fresh), 200)
  assert((await actionsOf(company)).includes('RECOVERY_CODES_CREATED'))
})

test('turning it off needs the password and a code', async () => {
  const { company, call, app, nextCode } = await enrolledOwner()
  const disable = (currentPassword: string, code: string) =>
    call('POST', '/dashboard/second-factor/disable', { body: { currentPassword, code } })
  const { password } = company.user
  const challenge = await challengeOf(company)
  assert.equal((await disable('wrong horse', nextCode())).json.details[0].path, '/currentPassword')
  assert.equal((await disable(password, '000000')).json.details[0].path, '/code')
  assert.equal((await disable(password, app.codeAt(clock()))).json.details[0].path, '/code')
  assert.equal((await disable(password, nextCode())).status, 204)
  assert.equal((await actionsOf(company)).at(-1), 'SECOND_FACTOR_DISABLED')
  assert.equal((await logIn(annals, company.user)).status, 200)
  const [code = ''] = app.recoveryCodes
  assert.equal((await enterCode(annals, { challenge, code })).status, 401)
})

test('a password reset keeps the second factor', async () => {
  const { company, cookie, nextCode } = await enrolledOwner()
  const account = await findAccount(db, company.user.email)
  assert(account)
  const link = await insertResetLink(db, { ...account, createdBy: null, nowMs: clock() })
  const used = await annals.call('POST', '/dashboard/links/use', {
    body: { token: link.token, password: 'staple battery' },
  })
  assert.equal(used.status, 202, used.text)
  assert.equal(used.headers.get('set-cookie'), null)
  assert.equal((await callAs(annals, cookie)('GET', '/dashboard/session')).status, 401)
  const { challenge } = used.json
  assert.equal((await enterCode(annals, { challenge, code: nextCode() })).status, 200)
  const again = await logIn(annals, { ...company.user, password: 'staple battery' })
  assert.equal(again.status, 202)
})

test("a code or a challenge of one member doesn't work for another", async () => {
  const one = await enrolledOwner()
  const other = await enrolledOwner()
  const challenge = await challengeOf(one.company)
  const [recovery = ''] = other.app.recoveryCodes
  for (const code of [other.nextCode(), recovery]) {
    assert.equal((await enterCode(annals, { challenge, code })).status, 401)
  }
  const signedIn = await enterCode(annals, { challenge, code: one.nextCode() })
  assert.equal(signedIn.json.company.id, one.company.company.id)
})
