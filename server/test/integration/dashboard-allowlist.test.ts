import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { insertResetLink } from '../../src/tenancy/member/one-time-link-store.ts'
import { findAccount } from '../../src/tenancy/member/user-store.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { openDashboardDownload } from '../harness/dashboard/console.ts'
import { type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { openSource } from '../harness/http/event-source.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { storeEvents } from '../harness/export/exports.ts'
import { enter, logIn } from '../harness/sign-in/login.ts'
import { enableFactor } from '../harness/sign-in/second-factor.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'

const OFFICE = '127.0.0.1'
const ELSEWHERE = { 'x-forwarded-for': '198.51.100.7' }
// Tests run on one machine, so a proxy names the other addresses.
const annals = await startTestApp({
  role: 'api',
  env: { ANNALS_RATE_LIMITS: 'off', ANNALS_TRUSTED_PROXIES: OFFICE },
})
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

const putList = (member: Member, body: object) =>
  member.call('PUT', '/dashboard/company/allowlist', { body: { forAllCalls: false, ...body } })
const closeTo = (member: Member, entries: readonly string[] = [OFFICE]) =>
  putList(member, { entries, forDashboard: true })

async function createTenant() {
  const company = await annals.createCompany({ plan: 'PRO' })
  return { company, owner: await signInAs(annals, company, 'OWNER') }
}

test('members use the dashboard only from a listed address', async () => {
  const { company, owner } = await createTenant()
  const viewer = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  const stranger = await signInAs(annals, await annals.createCompany(), 'VIEWER')
  const paths = ['/dashboard/session', '/dashboard/events', '/dashboard/company']
  for (const path of paths) {
    assert.equal((await viewer.call('GET', path, { headers: ELSEWHERE })).status, 200, path)
  }
  assert.equal((await closeTo(owner)).status, 200)
  for (const path of paths) {
    const { status, json } = await viewer.call('GET', path, { headers: ELSEWHERE })
    assert.deepEqual([status, json.code], [403, 'ip_not_allowed'], path)
    assert.match(json.error, /allows its dashboard only from certain addresses\. Yours, 198\.51/)
    assert.equal((await viewer.call('GET', path)).status, 200, path)
  }
  const change = await owner.call('PATCH', '/dashboard/company', {
    body: { name: 'Other' },
    headers: ELSEWHERE,
  })
  assert.equal(change.json.code, 'ip_not_allowed')
  const { status } = await stranger.call('GET', '/dashboard/session', { headers: ELSEWHERE })
  assert.equal(status, 200, 'another company is not affected')
})

test('signing in from another address fails after the password, and opens no session', async () => {
  const { company, owner } = await createTenant()
  await closeTo(owner)
  const { json, status, headers } = await logIn(annals, company.user, ELSEWHERE)
  assert.deepEqual([status, json.code, headers.getSetCookie()], [403, 'ip_not_allowed', []])
  await eventually(async () => {
    const { action, metadata } = (await readAudit(annals, company)).at(-1) ?? {}
    assert.equal(action, 'LOGIN_FAILED')
    assert.deepEqual(metadata, {
      address: ELSEWHERE['x-forwarded-for'],
      attempts: 1,
      reason: 'ADDRESS_NOT_ALLOWED',
    })
  })
  const wrong = await logIn(annals, { ...company.user, password: 'wrong' }, ELSEWHERE)
  assert.deepEqual([wrong.status, wrong.json.code], [401, 'not_signed_in'])
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert(!actions.includes('LOGIN_SUCCEEDED'), actions.join(' '))
  assert.equal((await logIn(annals, company.user)).status, 200)
})

test('a reset link works only from a listed address, also for a member with a second factor', async () => {
  const { company, owner } = await createTenant()
  const { call } = await enter(annals, company.user)
  await enableFactor(call, { password: company.user.password, nowMs: Date.now() })
  await closeTo(owner)
  const account = await findAccount(db, company.user.email)
  assert(account)
  const { token } = await insertResetLink(db, { ...account, createdBy: null, nowMs: Date.now() })
  const body = { token, password: 'a new long password' }
  const use = (headers: Record<string, string>) =>
    annals.call('POST', '/dashboard/links/use', {
      body,
      headers: { 'sec-fetch-site': 'same-origin', ...headers },
    })
  const refused = await use(ELSEWHERE)
  assert.deepEqual([refused.status, refused.json.code], [403, 'ip_not_allowed'])
  assert.equal((await use({})).status, 202)
})

test('members cannot lock themselves out, not even with a confirmation', async () => {
  const { company, owner } = await createTenant()
  for (const entries of [[], ['192.0.2.0/24']]) {
    const body = { entries, forDashboard: true, confirmAddressLeftOut: true }
    const { status, json } = await putList(owner, body)
    assert.deepEqual([status, json.code], [409, 'conflict'])
    assert.match(json.error, /you could no longer use the dashboard/)
  }
  await closeTo(owner)
  const kept = await putList(owner, { entries: ['192.0.2.0/24'], confirmAddressLeftOut: true })
  assert.equal(kept.status, 409, 'a call that does not know the setting leaves it on')
  const { json } = await putList(owner, { entries: [OFFICE, '192.0.2.0/24'] })
  assert.equal(json.allowlist.forDashboard, true)
  const opened = await putList(owner, { entries: [OFFICE], forDashboard: false })
  assert.equal(opened.json.allowlist.forDashboard, false)
  const entries = (await readAudit(annals, company)).map(({ metadata }) => metadata.after)
  assert.deepEqual(
    entries.map(({ forDashboard }) => forDashboard),
    [true, undefined, false],
  )
})

test('a live tail and a download end when their address is removed from the list', async () => {
  const { company, owner } = await createTenant()
  const [event] = [{ category: 'c', action: 'a', metadata: { text: 'x'.repeat(100_000) } }]
  await storeEvents(
    annals,
    company.workspaceKey,
    Array.from({ length: 60 }, () => event),
  )
  const { json: job } = await owner.call('POST', '/dashboard/exports', {
    body: { source: 'HOT', format: 'JSONL', filters: {} },
  })
  await closeTo(owner, [OFFICE, '198.51.100.0/24'])
  const tail = await openSource(annals, owner, { headers: ELSEWHERE })
  await using _tail = tail
  const opened = await openDashboardDownload(annals, owner, job.id, ELSEWHERE)
  assert.equal(tail.status, 200)
  await closeTo(owner)
  await eventually(() => assert(tail.isOver()))
  await assert.rejects(opened.rest())
})

test('an operator can open the dashboard for members who are locked out', async () => {
  const { company, owner } = await createTenant()
  await closeTo(owner)
  const env = { ANNALS_DATABASE_URL: annals.database.url, ANNALS_SECRET_KEY: SECRET_KEY }
  const open = (id: string) => runCommandInHost(['company', 'open-dashboard', '--company', id], env)
  const { code, stdout } = await open(company.company.id)
  assert.deepEqual([code, /from every address/.test(stdout)], [0, true], stdout)
  assert.equal((await owner.call('GET', '/dashboard/session', { headers: ELSEWHERE })).status, 200)
  assert.match((await open(company.company.id)).stdout, /doesn't apply to the dashboard/)
  const unknown = await open(crypto.randomUUID())
  assert.deepEqual([unknown.code, /no company with the id/.test(unknown.stderr)], [1, true])
  const changes = (await readAudit(annals, company)).filter(
    ({ action }) => action === 'ALLOWLIST_CHANGED',
  )
  assert.deepEqual(changes.at(-1)?.metadata.after, { forDashboard: false })
})
