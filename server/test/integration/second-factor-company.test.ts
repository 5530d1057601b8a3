import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setSecondFactorRequired } from '../../src/tenancy/company-store.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { insertInvitation } from '../../src/tenancy/member/one-time-link-store.ts'
import type { Role } from '../../src/tenancy/member/user-store.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { countLockWaits, withCompanyLocked } from '../harness/database/company-lock.ts'
import { callAs, type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { openStream } from '../harness/export/exports.ts'
import { cookieIn, enter, logIn } from '../harness/sign-in/login.ts'
import { readOperations } from '../harness/openapi/operations.ts'
import { enableFactor, enterCode } from '../harness/sign-in/second-factor.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'

const STEP_MS = 30_000
const PASSWORD = 'staple battery'
const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { db } = annals.app.database

async function enterWithFactor(user: CreatedCompany['user']) {
  const session = await enter(annals, user)
  const app = await enableFactor(session.call, { password: user.password, nowMs: Date.now() })
  return { ...session, app }
}

let invited = 0

/** A member with a password, signed in. */
async function join({ company }: CreatedCompany, role: Role) {
  const email = `joined-${(invited += 1)}@example.com`
  const invitation = { companyId: company.id, email, role, workspaceIds: [], createdBy: null }
  const { token } = await db
    .transaction()
    .execute((trx) => insertInvitation(trx, { ...invitation, nowMs: Date.now() }))
  const response = await annals.call('POST', '/dashboard/links/use', {
    body: { token, password: PASSWORD },
  })
  assert.equal(response.status, 200, response.text)
  const call = callAs(annals, cookieIn(response))
  return { email, userId: response.json.user.id, session: response.json, call }
}

const setRequired = (call: Member['call'], requiresSecondFactor: boolean) =>
  call('PUT', '/dashboard/company/sign-in', { body: { requiresSecondFactor } })

test('only an owner with a second factor can require one', async () => {
  const company = await annals.createCompany()
  const admin = await signInAs(annals, company, 'ADMIN')
  assert.equal((await setRequired(admin.call, true)).json.code, 'insufficient_role')
  const { call } = await enter(annals, company.user)
  assert.equal((await setRequired(call, true)).status, 409)
  await enableFactor(call, { password: company.user.password, nowMs: Date.now() })
  const { status, json } = await setRequired(call, true)
  assert.deepEqual([status, json.requiresSecondFactor], [200, true])
  assert.equal((await setRequired(call, true)).status, 200)
  const entries = (await readAudit(annals, company)).filter(
    ({ action }) => action === 'COMPANY_CHANGED',
  )
  assert.deepEqual(
    entries.map(({ metadata: { before, after: now } }) => [before, now]),
    [[{ requiresSecondFactor: false }, { requiresSecondFactor: true }]],
  )
})

/** All that a member without the required second factor can use. */
const OPEN = [
  'getSession',
  'logOut',
  'getIdentity',
  'getSecondFactor',
  'startSecondFactor',
  'confirmSecondFactor',
]

test('without a required second factor, a member can only set one up or sign out', async () => {
  const company = await annals.createCompany()
  const operations = (await readOperations()).filter((known) => known.isDashboard && !known.isOpen)
  // They signed in before it was required.
  const member = await signInAs(annals, company, 'OWNER')
  const other = await annals.createCompany()
  const stranger = await signInAs(annals, other, 'OWNER')
  await setSecondFactorRequired(db, { companyId: company.company.id, isRequired: true })
  const open: string[] = []
  for (const { id, method, path } of operations) {
    if (id === 'logOut') continue
    const { json } = await member.call(method, path)
    if (json?.code !== 'second_factor_required') open.push(id)
  }
  assert.deepEqual(open.toSorted(), OPEN.filter((id) => id !== 'logOut').toSorted())
  assert(operations.length > 60)
  assert.equal((await member.call('GET', '/dashboard/session')).json.needsSecondFactor, true)
  assert.equal((await member.call('DELETE', '/dashboard/session')).status, 204)
  assert.equal((await stranger.call('GET', '/dashboard/company')).status, 200)
  const { workspaceKey: key } = company
  assert.equal((await annals.call('GET', '/v1/events', { key })).status, 200)
})

test('members are led to enrollment after sign-in, and then have full access', async () => {
  const company = await annals.createCompany()
  const owner = await enterWithFactor(company.user)
  assert.equal((await setRequired(owner.call, true)).status, 200)
  assert.equal((await owner.call('GET', '/dashboard/company')).status, 200)
  const member = await join(company, 'ADMIN')
  assert.equal(member.session.needsSecondFactor, true)
  assert.equal((await member.call('GET', '/dashboard/company')).status, 403)
  const app = await enableFactor(member.call, { password: PASSWORD, nowMs: Date.now() })
  assert.equal((await member.call('GET', '/dashboard/company')).status, 200)
  const refused = await member.call('POST', '/dashboard/second-factor/disable', {
    body: { currentPassword: PASSWORD, code: app.codeAt(Date.now() + STEP_MS) },
  })
  assert.equal(refused.status, 409)
  // Without it, they are led back to enrollment.
  const path = `/dashboard/members/${member.userId}/reset-second-factor`
  assert.equal((await owner.call('POST', path)).status, 204)
  const again = await logIn(annals, { email: member.email, password: PASSWORD })
  assert.equal(again.json.needsSecondFactor, true)
  assert.equal((await setRequired(owner.call, false)).status, 200)
  const { call } = await enter(annals, { email: member.email, password: PASSWORD })
  assert.equal((await call('GET', '/dashboard/company')).status, 200)
})

test('a change that was sent before the second factor became required is refused', async () => {
  const company = await annals.createCompany()
  const { id: companyId } = company.company
  const member = await signInAs(annals, company, 'OWNER')
  const { sent } = await withCompanyLocked(annals, companyId, async (trx) => {
    const pending = member.call('PATCH', '/dashboard/company', { body: { name: 'Late' } })
    await eventually(async () => assert.equal(await countLockWaits(annals), 1))
    await setSecondFactorRequired(trx, { companyId, isRequired: true })
    return { sent: pending }
  })
  assert.equal((await sent).json.code, 'second_factor_required')
})

test('open live tails end when the second factor becomes required', async () => {
  const company = await annals.createCompany()
  const member = await signInAs(annals, company, 'OWNER')
  const headers = { cookie: member.cookie, 'sec-fetch-site': 'same-origin' }
  const stream = await openStream(`${annals.url}/dashboard/events/live`, headers)
  assert.equal(stream.response.statusCode, 200)
  await setSecondFactorRequired(db, { companyId: company.company.id, isRequired: true })
  assert.match((await stream.rest()).text, /event: end/)
})

test('an owner or admin resets the second factor of a member who lost it', async () => {
  const company = await annals.createCompany()
  const member = await join(company, 'ADMIN')
  const owner = await enterWithFactor(company.user)
  const admin = await signInAs(annals, company, 'ADMIN')
  const { json: own } = await owner.call('GET', '/dashboard/session')
  const reset = (call: Member['call'], userId: string) =>
    call('POST', `/dashboard/members/${userId}/reset-second-factor`)
  assert.equal((await reset(admin.call, member.userId)).status, 409)
  const app = await enableFactor(member.call, { password: PASSWORD, nowMs: Date.now() })
  const listed = await admin.call('GET', '/dashboard/members')
  const withFactor = listed.json.members
    .filter((known: { hasSecondFactor: boolean }) => known.hasSecondFactor)
    .map((known: { email: string }) => known.email)
  assert.deepEqual(withFactor.toSorted(), [member.email, company.user.email].toSorted())
  const analyst = await signInAs(annals, company, 'ANALYST', [company.workspace.id])
  const foreign = await signInAs(annals, await annals.createCompany(), 'OWNER')
  assert.equal((await reset(analyst.call, member.userId)).status, 403)
  assert.equal((await reset(foreign.call, member.userId)).status, 404)
  assert.equal((await reset(admin.call, own.user.id)).status, 403)
  assert.equal((await reset(owner.call, own.user.id)).status, 409)
  const credentials = { email: member.email, password: PASSWORD }
  const { challenge } = (await logIn(annals, credentials)).json
  assert.equal((await reset(admin.call, member.userId)).status, 204)
  assert.equal((await member.call('GET', '/dashboard/session')).status, 401)
  const [code = ''] = app.recoveryCodes
  assert.equal((await enterCode(annals, { challenge, code })).status, 401)
  assert.equal((await logIn(annals, credentials)).status, 200)
  const entry = (await readAudit(annals, company)).find(
    ({ action }) => action === 'SECOND_FACTOR_RESET',
  )
  assert.equal(entry?.actor.id, admin.userId)
  assert.deepEqual(entry.resource, { type: 'user', id: member.userId })
  assert.equal(entry.metadata.email, member.email)
})

test('the operator resets a second factor with a command', async () => {
  const company = await annals.createCompany()
  const owner = await enterWithFactor(company.user)
  const env = { ANNALS_DATABASE_URL: annals.database.url, ANNALS_SECRET_KEY: SECRET_KEY }
  const reset = (email: string) =>
    runCommandInHost(['user', 'reset-second-factor', '--email', email], env)
  const { code, stdout, stderr } = await reset(company.user.email)
  assert.equal(code, 0, stderr)
  assert.match(stdout, new RegExp(`^The second factor of ${company.user.email} is removed`))
  assert.equal((await owner.call('GET', '/dashboard/session')).status, 401)
  assert.equal((await logIn(annals, company.user)).status, 200)
  const again = await reset(company.user.email)
  assert.deepEqual(
    [again.code, again.stderr],
    [1, `annals: ${company.user.email} has no second factor.\n`],
  )
  const unknown = await reset('nobody@example.com')
  assert.deepEqual(
    [unknown.code, unknown.stderr],
    [1, 'annals: There is no account for nobody@example.com.\n'],
  )
  const entries = await readAudit(annals, company)
  const entry = entries.find(({ action }) => action === 'SECOND_FACTOR_RESET')
  assert.deepEqual(entry?.actor, { id: 'operator', role: 'operator' })
})
