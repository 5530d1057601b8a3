import assert from 'node:assert/strict'
import { test } from 'node:test'
import { audited } from '../../src/edge/dashboard/member-caller.ts'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import {
  insertInvitation,
  INVITATION_LIFE_MS,
} from '../../src/tenancy/member/one-time-link-store.ts'
import { insertSession } from '../../src/tenancy/sign-in/session-store.ts'
import { startSignInSweepWorker } from '../../src/tenancy/sign-in/sign-in-sweep-worker.ts'
import { getSystemWorkspace } from '../../src/tenancy/workspace/workspace-store.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { callAs, type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { cookieIn, enter, logIn } from '../harness/sign-in/login.ts'
import { startTestApp } from '../harness/app/start-app.ts'

test('a member sees their company, workspaces and permissions', async () => {
  await using app = await startTestApp()
  const company = await app.createCompany({ workspaces: ['Production', 'Staging'] })
  const viewer = await signInAs(app, company, 'VIEWER', [company.workspace.id])
  const { status, json } = await viewer.call('GET', '/dashboard/session')
  assert.equal(status, 200)
  assert.deepEqual(json.user, { id: viewer.userId, email: viewer.email, role: 'VIEWER' })
  assert.deepEqual(
    json.workspaces.map(({ name }: { name: string }) => name),
    ['Production'],
  )
  assert(!json.permissions.includes('keys.manage'))
  const owner = await signInAs(app, company, 'OWNER')
  const { json: all } = await owner.call('GET', '/dashboard/session')
  assert.deepEqual(
    all.workspaces.map(({ name }: { name: string }) => name),
    ['Dashboard activity', 'Production', 'Staging'],
  )
})

test('no one is signed in without a session or with an invalid one', async () => {
  await using app = await startTestApp()
  for (const cookie of ['', 'annals_session=x', `annals_session=${'A'.repeat(43)}`]) {
    const { status, json, headers } = await callAs(app, cookie)('GET', '/dashboard/session')
    assert.equal(status, 401)
    assert.equal(json.code, 'not_signed_in')
    assert.equal(headers.get('www-authenticate'), null)
  }
})

test('a change and its audit event are stored together or not at all', async () => {
  await using app = await startTestApp()
  const company = await app.createCompany()
  const { db } = app.app.database
  const deps = { db, clock: Date.now }
  const actor = {
    companyId: company.company.id,
    userId: null,
    email: 'ana@example.com',
    role: null,
    address: '127.0.0.1',
    traceId: 'a'.repeat(32),
  }
  const rename = (name: string, fails: boolean) =>
    audited(deps, actor, async (trx, record) => {
      await trx.updateTable('company').set({ name }).where('id', '=', company.company.id).execute()
      record({ action: 'COMPANY_CHANGED', metadata: { name } })
      if (fails) throw new Error('rolled back')
    })
  await rename('First', false)
  await assert.rejects(rename('Second', true), /rolled back/)
  await Promise.all(['Third', 'Fourth', 'Fifth'].map((name) => rename(name, false)))
  const entries = await readAudit(app, company)
  assert.deepEqual(entries[0], {
    action: 'COMPANY_CHANGED',
    actor: { email: 'ana@example.com' },
    resource: null,
    metadata: { name: 'First', address: '127.0.0.1' },
  })
  assert.equal(entries.length, 4)
  const workspaceId = await getSystemWorkspace(db, company.company.id)
  assert.equal((await verifyChain(app.app.database, app.app.archive, workspaceId)).ok, true)
})

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

test('a session ends after half an hour without a request, and continues while it is used', async () => {
  const { clock, advance } = manualClock()
  await using app = await startTestApp({ clock })
  const company = await app.createCompany()
  const { call } = await enter(app, company.user)
  for (let times = 0; times < 3; times += 1) {
    advance(29 * MINUTE_MS)
    assert.equal((await call('GET', '/dashboard/session')).status, 200)
  }
  advance(30 * MINUTE_MS)
  assert.equal((await call('GET', '/dashboard/session')).status, 401)
})

test('a session ends twelve hours after sign-in, however active it is', async () => {
  const { clock, advance } = manualClock()
  await using app = await startTestApp({ clock })
  const company = await app.createCompany()
  const { call } = await enter(app, company.user)
  for (let passedMs = 0; passedMs < 12 * HOUR_MS - 20 * MINUTE_MS; passedMs += 20 * MINUTE_MS) {
    advance(20 * MINUTE_MS)
    assert.equal((await call('GET', '/dashboard/session')).status, 200)
  }
  advance(20 * MINUTE_MS)
  assert.equal((await call('GET', '/dashboard/session')).status, 401)
})

test('a member sees only their own sessions', async () => {
  const { clock, advance } = manualClock()
  await using app = await startTestApp({ clock })
  const company = await app.createCompany()
  await signInAs(app, company, 'ADMIN')
  const first = await logIn(app, company.user, { 'user-agent': '<b>Firefox</b>' })
  advance(MINUTE_MS)
  const { call } = await enter(app, company.user)
  const { status, json } = await call('GET', '/dashboard/sessions')
  assert.equal(status, 200)
  assert.equal(json.sessions.length, 2)
  const [current, other] = json.sessions
  assert.deepEqual([current.isCurrent, other.isCurrent], [true, false])
  assert.deepEqual(other, {
    id: other.id,
    createdAt: new Date(clock() - MINUTE_MS).toISOString(),
    seenAt: new Date(clock() - MINUTE_MS).toISOString(),
    expiresAt: new Date(clock() - MINUTE_MS + 12 * HOUR_MS).toISOString(),
    address: '127.0.0.1',
    userAgent: '<b>Firefox</b>',
    isCurrent: false,
  })
  assert(!JSON.stringify(json).includes(cookieIn(first).split('=')[1] ?? ''))
  advance(29 * MINUTE_MS)
  const { json: later } = await call('GET', '/dashboard/sessions')
  assert.deepEqual(
    later.sessions.map(({ id }: { id: string }) => id),
    [current.id],
  )
})

test('signing out ends the session and deletes the cookie', async () => {
  await using app = await startTestApp()
  const company = await app.createCompany()
  const mine = await enter(app, company.user)
  const other = await enter(app, company.user)
  const response = await mine.call('DELETE', '/dashboard/session')
  assert.equal(response.status, 204)
  assert.equal(
    response.headers.get('set-cookie'),
    'annals_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax',
  )
  assert.equal((await mine.call('GET', '/dashboard/session')).status, 401)
  assert.equal((await mine.call('DELETE', '/dashboard/session')).status, 401)
  assert.equal((await other.call('GET', '/dashboard/session')).status, 200)
  const actions = (await readAudit(app, company)).map(({ action }) => action)
  assert.deepEqual(actions, ['LOGIN_SUCCEEDED', 'LOGIN_SUCCEEDED', 'LOGOUT'])
})

test('signing out everywhere ends all sessions of the member, and no others', async () => {
  await using app = await startTestApp()
  const company = await app.createCompany()
  const admin = await signInAs(app, company, 'ADMIN')
  const [mine, other] = [await enter(app, company.user), await enter(app, company.user)]
  const { status, json, headers } = await mine.call('DELETE', '/dashboard/sessions')
  assert.equal(status, 200)
  assert.deepEqual(json, { ended: 2 })
  assert.match(headers.get('set-cookie') ?? '', /Max-Age=0/)
  assert.equal((await mine.call('GET', '/dashboard/session')).status, 401)
  assert.equal((await other.call('GET', '/dashboard/session')).status, 401)
  assert.equal((await admin.call('GET', '/dashboard/session')).status, 200)
  const entry = (await readAudit(app, company)).at(-1)
  assert.equal(entry?.action, 'SESSIONS_ENDED')
  assert.equal(entry?.metadata.count, 2)
})

test('a member can end one of their sessions, and those of others are unknown', async () => {
  await using app = await startTestApp()
  const [company, foreign] = [await app.createCompany(), await app.createCompany()]
  const mine = await enter(app, company.user)
  const other = await enter(app, company.user)
  const idOf = async ({ call }: { call: Member['call'] }) => {
    const { json } = await call('GET', '/dashboard/sessions')
    return json.sessions.find(({ isCurrent }: { isCurrent: boolean }) => isCurrent).id
  }
  const unknown = [
    await idOf(await signInAs(app, company, 'ADMIN')),
    await idOf(await enter(app, foreign.user)),
    newId(),
    'not-an-id',
    '%F0%9F%91%8D',
  ]
  const responses = []
  for (const id of unknown) responses.push(await mine.call('DELETE', `/dashboard/sessions/${id}`))
  for (const { status, json } of responses) {
    assert.equal(status, 404)
    assert.deepEqual({ ...json, traceId: null }, { ...responses[0]?.json, traceId: null })
  }
  const ended = await mine.call('DELETE', `/dashboard/sessions/${await idOf(other)}`)
  assert.equal(ended.status, 204)
  assert.equal(ended.headers.get('set-cookie'), null)
  assert.equal((await other.call('GET', '/dashboard/session')).status, 401)
  const own = await mine.call('DELETE', `/dashboard/sessions/${await idOf(mine)}`)
  assert.match(own.headers.get('set-cookie') ?? '', /Max-Age=0/)
  assert.equal((await mine.call('GET', '/dashboard/session')).status, 401)
})

test('the fifty-first session of a member ends the oldest', async () => {
  const { clock, advance } = manualClock()
  await using app = await startTestApp({ clock })
  const company = await app.createCompany()
  const first = await enter(app, company.user)
  advance(1)
  const second = await enter(app, company.user)
  const { json } = await second.call('GET', '/dashboard/session')
  const { db } = app.app.database
  for (let count = 0; count < 49; count += 1) {
    const session = { userId: json.user.id, address: '127.0.0.1', userAgent: '', nowMs: clock() }
    await insertSession(db, session)
  }
  assert.equal((await first.call('GET', '/dashboard/session')).status, 401)
  assert.equal((await second.call('GET', '/dashboard/sessions')).json.sessions.length, 50)
})

test('rejects a change requested by another site’s page, whatever the cookie', async () => {
  await using app = await startTestApp()
  const company = await app.createCompany()
  const { cookie } = await enter(app, company.user)
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ]) {
    for (const [method, path] of [
      ['DELETE', '/dashboard/session'],
      ['DELETE', '/dashboard/sessions'],
    ] as const) {
      const { status, json } = await app.call(method, path, { headers: { cookie, ...headers } })
      assert.equal(status, 403)
      assert.equal(json.code, 'cross_site')
    }
  }
  const fromOurs = { cookie, origin: app.url }
  assert.equal((await app.call('DELETE', '/dashboard/session', { headers: fromOurs })).status, 204)
})

test('behind a proxy, accepts pages of the public URL and of the internal host', async () => {
  const env = { ANNALS_PUBLIC_URL: 'https://audit.example.com' }
  await using app = await startTestApp({ env })
  const { user } = await app.createCompany()
  const send = (origin: string) =>
    app.call('POST', '/dashboard/session', { body: user, headers: { origin } })
  assert.equal((await send('https://audit.example.com')).status, 200)
  assert.equal((await send(app.url)).status, 200)
  assert.equal((await send('https://audit.example.com.evil.example')).status, 403)
})

test('the cookie of a removed member is invalid immediately', async () => {
  await using app = await startTestApp()
  const company = await app.createCompany()
  const member = await signInAs(app, company, 'ANALYST', [company.workspace.id])
  await app.app.database.db.deleteFrom('app_user').where('id', '=', member.userId).execute()
  assert.equal((await member.call('GET', '/dashboard/session')).status, 401)
})

test('two session cookies are both ignored', async () => {
  await using app = await startTestApp()
  const company = await app.createCompany()
  const [one, two] = [await enter(app, company.user), await enter(app, company.user)]
  for (const cookie of [
    `${one.cookie}; ${two.cookie}`,
    `${one.cookie}; annals_session=x`,
    `annals_session=; ${one.cookie}`,
  ]) {
    assert.equal((await callAs(app, cookie)('GET', '/dashboard/session')).status, 401)
  }
  const beside = `theme=dark; ${one.cookie}; annals_session_other=x`
  assert.equal((await callAs(app, beside)('GET', '/dashboard/session')).status, 200)
})

test('removes ended sessions and links, and keeps the others', async () => {
  const { clock, advance } = manualClock()
  await using app = await startTestApp({ clock })
  const company = await app.createCompany()
  const { db } = app.app.database
  await enter(app, company.user)
  const invitation = { companyId: company.company.id, role: 'VIEWER', createdBy: null } as const
  await insertInvitation(db, {
    ...invitation,
    email: 'first@example.com',
    workspaceIds: [],
    nowMs: clock() - INVITATION_LIFE_MS + HOUR_MS,
  })
  advance(12 * HOUR_MS)
  await enter(app, company.user)
  const kept = { ...invitation, email: 'second@example.com', workspaceIds: [], nowMs: clock() }
  await insertInvitation(db, kept)
  await using worker = startSignInSweepWorker({ db, clock, logger: createLogger('silent') })
  await worker.runNow()
  const sessions = await db.selectFrom('user_session').select('created_at').execute()
  assert.deepEqual(sessions, [{ created_at: new Date(clock()) }])
  const links = await db.selectFrom('one_time_link').select('email').execute()
  assert.deepEqual(links, [{ email: 'second@example.com' }])
})
