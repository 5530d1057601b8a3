import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { assertId } from '../../src/platform/id.ts'
import { insertResetLink, findLink } from '../../src/tenancy/member/one-time-link-store.ts'
import {
  insertSession,
  SESSION_LIFE_MS,
  SESSIONS_MAX,
} from '../../src/tenancy/sign-in/session-store.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { readAudit } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { enter, logIn } from '../harness/sign-in/login.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** The system clock, which an operator or a time server sets, and the monotonic clock. */
const wall = manualClock()
const real = manualClock(0)
const annals = await startTestApp({ clock: wall.clock, monotonic: real.clock })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const step = (ms: number) => wall.advance(ms)
function pass(ms: number): void {
  wall.advance(ms)
  real.advance(ms)
}

test('a member who mistyped the password once signs in after the clock steps back', async () => {
  const { user } = await annals.createCompany()
  assert.equal((await logIn(annals, { ...user, password: 'mistyped' })).status, 401)
  step(-DAY_MS)
  assert.equal((await logIn(annals, user)).status, 200)
})

test('a throttled member waits exactly a minute, whatever the system clock does', async () => {
  const { user } = await annals.createCompany()
  for (let attempt = 0; attempt < 10; attempt += 1) {
    await logIn(annals, { ...user, password: 'mistyped' })
  }
  for (const stepMs of [DAY_MS, -2 * DAY_MS]) {
    step(stepMs)
    const refused = await logIn(annals, user)
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('retry-after'), '60')
  }
  pass(MINUTE_MS)
  assert.equal((await logIn(annals, user)).status, 200)
})

test('a member can request a password reset again after the clock steps back', async () => {
  const { user } = await annals.createCompany()
  const requestReset = () =>
    annals.call('POST', '/dashboard/password-reset', {
      body: { email: user.email },
      headers: { 'sec-fetch-site': 'same-origin' },
    })
  assert.equal((await requestReset()).status, 202)
  step(-DAY_MS)
  assert.equal((await requestReset()).status, 202)
})

test('a session survives a step back of the clock, and still ends when idle or expired', async () => {
  const { user } = await annals.createCompany()
  const { call } = await enter(annals, user)
  step(-DAY_MS)
  assert.equal((await call('GET', '/dashboard/session')).status, 200)
  const [session] = (await call('GET', '/dashboard/sessions')).json.sessions
  assert.equal(Date.parse(session.expiresAt), wall.clock() + SESSION_LIFE_MS)
  pass(31 * MINUTE_MS)
  assert.equal((await call('GET', '/dashboard/session')).status, 401)
})

test('a session opened after the clock stepped back outlives those opened before', async () => {
  const { user } = await annals.createCompany()
  const first = await enter(annals, user)
  const { userId } = await memberOf(user.email)
  pass(1)
  for (let count = 1; count < SESSIONS_MAX; count += 1) {
    await insertSession(db, { userId, address: '', userAgent: '', nowMs: wall.clock() })
  }
  step(-DAY_MS)
  const second = await enter(annals, user)
  pass(1)
  await enter(annals, user)
  assert.equal((await second.call('GET', '/dashboard/session')).status, 200)
  assert.equal((await first.call('GET', '/dashboard/session')).status, 401)
})

test('a reset link sent after the clock stepped back outlives those sent before', async () => {
  const { user } = await annals.createCompany()
  const account = { ...(await memberOf(user.email)), email: user.email, createdBy: null }
  const create = () => insertResetLink(db, { ...account, nowMs: wall.clock() })
  for (let count = 0; count < 5; count += 1) await create()
  step(-DAY_MS)
  const first = await create()
  pass(1)
  const second = await create()
  for (const { token } of [first, second]) assert(await findLink(db, token, wall.clock()))
})

test('a revoked key is refused within two seconds even if the clock steps back', async () => {
  const { workspaceKey } = await annals.createCompany()
  const status = async () =>
    (await annals.call('GET', '/v1/keys/status', { key: workspaceKey })).status
  assert.equal(await status(), 200)
  const prefix = workspaceKey.split('_', 2)[1] ?? ''
  await db
    .updateTable('api_key')
    .set({ revoked_at: new Date(wall.clock()) })
    .where('kid', '=', prefix)
    .execute()
  pass(2_000)
  step(-2_000)
  assert.equal(await status(), 401)
})

test('failed logins are audited every minute after the clock steps back', async () => {
  const company = await annals.createCompany()
  const failures = async () =>
    (await readAudit(annals, company)).filter(({ action }) => action === 'LOGIN_FAILED').length
  await logIn(annals, { ...company.user, password: 'mistyped' })
  await eventually(async () => assert.equal(await failures(), 1))
  step(-DAY_MS)
  await logIn(annals, { ...company.user, password: 'mistyped' })
  pass(MINUTE_MS)
  await eventually(async () => assert.equal(await failures(), 2))
})

async function memberOf(email: string) {
  const row = await db
    .selectFrom('app_user')
    .select(['id as userId', 'company_id as companyId'])
    .where('email', '=', email)
    .executeTakeFirstOrThrow()
  return { userId: assertId<'user'>(row.userId), companyId: assertId<'company'>(row.companyId) }
}
