import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { totpCode } from '../../src/tenancy/sign-in/totp.ts'
import { readAudit } from '../harness/dashboard/dashboard.ts'
import { startIdentityProvider, type Person } from '../harness/sign-in/identity-provider.ts'
import { enter, logIn } from '../harness/sign-in/login.ts'
import { OidcVisitor } from '../harness/sign-in/oidc-visitor.ts'
import { enableFactor, enterCode, fromBase32 } from '../harness/sign-in/second-factor.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const provider = await startIdentityProvider()
after(() => provider[Symbol.asyncDispose]())
const annals = await startTestApp({
  role: 'api',
  env: { ...provider.env, ANNALS_RATE_LIMITS: 'off' },
})
after(() => annals[Symbol.asyncDispose]())

type KnownCompany = Awaited<ReturnType<typeof annals.createCompany>>
let persons = 0

/** A new person at the provider. */
function addPerson(person: Person = {}): { id: string; email: string } {
  persons += 1
  const id = `person-${persons}`
  const email = person.email ?? `${id}@example.com`
  provider.people.set(id, { email_verified: true, ...person, email })
  return { id, email }
}

const visit = () => new OidcVisitor(annals, provider)

/** A company whose owner has an account at the provider. */
async function createKnownOwner() {
  const { id, email } = addPerson()
  const company = await annals.createCompany({ email })
  return { id, email, company, credentials: company.user }
}

async function invite(company: KnownCompany, email: string) {
  const signedIn = await logIn(annals, company.user)
  const cookie = signedIn.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
  const response = await annals.call('POST', '/dashboard/invitations', {
    headers: { cookie, 'sec-fetch-site': 'same-origin' },
    body: { email, role: 'ADMIN', workspaceIds: [] },
  })
  assert.equal(response.status, 201, response.text)
  return new URL(response.json.link).hash.slice(1)
}

test('the sign-in page gets the name of the identity provider', async () => {
  const { json } = await annals.call('GET', '/dashboard/sign-in-options')
  assert.deepEqual(json, { provider: { name: 'Example ID' } })
})

test('a member signs in with a verified address, and the account is linked once', async () => {
  const { id, email, company } = await createKnownOwner()
  const browser = visit()
  assert.equal(await browser.signIn(id, { returnTo: '/app/keys?a=1' }), '/app/keys?a=1')
  const { status, json } = await browser.session()
  assert.equal(status, 200)
  assert.deepEqual([json.user.email, json.company.id], [email, company.company.id])
  const sessions = await browser.call('GET', '/dashboard/sessions')
  assert.equal(sessions.json.sessions.length, 1)
  assert.equal(await visit().signIn(id), '/app/explorer')
  const entries = await readAudit(annals, company)
  assert.deepEqual(
    entries.map(({ action }) => action),
    ['IDENTITY_LINKED', 'LOGIN_SUCCEEDED', 'LOGIN_SUCCEEDED'],
  )
  assert.equal(entries[0]?.metadata.issuer, provider.issuer)
  assert.equal(entries[0]?.metadata.subject, id)
  assert.equal(entries[1]?.metadata.via, 'OPENID_CONNECT')
  const { json: identity } = await browser.call('GET', '/dashboard/identity')
  assert.deepEqual([identity.provider, identity.hasPassword], [{ name: 'Example ID' }, true])
  assert(identity.link.usedAt > identity.link.linkedAt)
})

test('after linking, the subject decides, even if the address at the provider changes', async () => {
  const first = await createKnownOwner()
  const second = await createKnownOwner()
  assert.equal(await visit().signIn(first.id), '/app/explorer')
  provider.people.set(first.id, { email: second.email, email_verified: true })
  const browser = visit()
  await browser.signIn(first.id)
  const { json } = await browser.session()
  assert.deepEqual([json.user.email, json.company.id], [first.email, first.company.company.id])
})

test('refuses an address whose account is linked to another person at the provider', async () => {
  const { id, email, company } = await createKnownOwner()
  await visit().signIn(id)
  const other = addPerson({ email })
  const browser = visit()
  assert.equal(await browser.signIn(other.id), '/app/explorer#sign-in=other_account')
  assert.equal((await browser.session()).status, 401)
  const linked = (await readAudit(annals, company)).filter(
    ({ action }) => action === 'IDENTITY_LINKED',
  )
  assert.equal(linked.length, 1)
})

for (const [what, person] of [
  ['an unverified address', { email_verified: false }],
  ['an address that the provider says nothing about', {}],
] as const) {
  test(`refuses ${what}`, async () => {
    const { id, email, company } = await createKnownOwner()
    provider.people.set(id, { ...person, email })
    const browser = visit()
    assert.equal(await browser.signIn(id), '/app/explorer#sign-in=unverified_email')
    assert.equal((await browser.session()).status, 401)
    assert.deepEqual(await readAudit(annals, company), [])
  })
}

test('an address whose lowercase form is that of an account does not sign in to it', async () => {
  const company = await annals.createCompany({ email: 'kate@example.com' })
  // The Kelvin sign. `toLowerCase` makes it a k, but the mailbox is another one.
  const { id } = addPerson({ email: '\u212Aate@example.com' })
  assert.equal(await visit().signIn(id), '/app/explorer#sign-in=unverified_email')
  assert.deepEqual(await readAudit(annals, company), [])
  const capital = addPerson({ email: 'KATE@Example.com' })
  assert.equal(await visit().signIn(capital.id), '/app/explorer')
})

test('refuses a person without an account, an invitation or a mapped group', async () => {
  const { id } = addPerson({ groups: ['staff'] })
  assert.equal(await visit().signIn(id), '/app/explorer#sign-in=no_account')
})

test('an invited person joins without a password, and can set one later', async () => {
  const company = await annals.createCompany()
  const { id, email } = addPerson()
  const linkToken = await invite(company, email)
  const browser = visit()
  assert.equal(await browser.signIn(id, { linkToken }), '/app/explorer')
  const { json } = await browser.session()
  assert.deepEqual([json.user.email, json.user.role], [email, 'ADMIN'])
  assert.equal((await browser.call('GET', '/dashboard/identity')).json.hasPassword, false)
  for (const password of ['none', '', 'correct horse']) {
    assert((await logIn(annals, { email, password })).status >= 400, password)
  }
  const unlink = await browser.call('DELETE', '/dashboard/identity')
  assert.deepEqual([unlink.status, unlink.json.code], [409, 'conflict'])
  const again = await visit().signIn(addPerson().id, { linkToken })
  assert.equal(again, '/app/explorer#sign-in=invitation_over')
  const owner = await enter(annals, company.user)
  const reset = await owner.call('POST', `/dashboard/members/${json.user.id}/reset-link`)
  const token = new URL(reset.json.link).hash.slice(1)
  const password = 'a phrase of several words'
  const used = await annals.call('POST', '/dashboard/links/use', { body: { token, password } })
  assert.equal(used.status, 200, used.text)
  const member = await enter(annals, { email, password })
  assert.equal((await member.call('DELETE', '/dashboard/identity')).status, 204)
})

test('a company that requires a second factor requires it of people who joined without a password', async () => {
  const company = await annals.createCompany()
  const { id, email } = addPerson()
  const browser = visit()
  await browser.signIn(id, { linkToken: await invite(company, email) })
  await annals.app.database.db
    .updateTable('company')
    .set({ requires_second_factor: true })
    .where('id', '=', company.company.id)
    .execute()
  const refused = await browser.call('GET', '/dashboard/events')
  assert.deepEqual([refused.status, refused.json.code], [403, 'second_factor_required'])
  const started = await browser.call('POST', '/dashboard/second-factor', { body: {} })
  const code = totpCode(fromBase32(started.json.secret), Date.now())
  const confirmed = await browser.call('POST', '/dashboard/second-factor/confirm', {
    body: { code },
  })
  assert.equal(confirmed.status, 200, confirmed.text)
  assert.equal((await browser.call('GET', '/dashboard/events')).status, 200)
})

test('an invitation is only for its own address, and only for people without an account', async () => {
  const company = await annals.createCompany()
  const invited = addPerson()
  const linkToken = await invite(company, invited.email)
  const stranger = await visit().signIn(addPerson().id, { linkToken })
  assert.equal(stranger, '/app/explorer#sign-in=other_address')
  const { id } = await createKnownOwner()
  assert.equal(await visit().signIn(id, { linkToken }), '/app/explorer#sign-in=has_account')
  assert.equal(await visit().signIn(invited.id, { linkToken }), '/app/explorer')
})

test('an open invitation alone does not make a person a member', async () => {
  const company = await annals.createCompany()
  const { id, email } = addPerson()
  await invite(company, email)
  assert.equal(await visit().signIn(id), '/app/explorer#sign-in=no_account')
})

test('a member with a password unlinks the account, and the next sign-in links it again', async () => {
  const { id, company } = await createKnownOwner()
  const browser = visit()
  await browser.signIn(id)
  assert.equal((await browser.call('DELETE', '/dashboard/identity')).status, 204)
  assert.equal((await browser.call('DELETE', '/dashboard/identity')).status, 404)
  assert.equal((await browser.call('GET', '/dashboard/identity')).json.link, null)
  await visit().signIn(id)
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert.deepEqual(
    actions.filter((action) => action.startsWith('IDENTITY')),
    ['IDENTITY_LINKED', 'IDENTITY_UNLINKED', 'IDENTITY_LINKED'],
  )
})

test('a member with a second factor also enters a code', async () => {
  const { id, company } = await createKnownOwner()
  const browser = visit()
  await browser.signIn(id)
  const { password } = company.user
  const nowMs = Date.now()
  const factor = await enableFactor(browser.call, { password, nowMs })
  const next = visit()
  const location = await next.signIn(id)
  const challenge = /^\/app\/explorer#sign-in-challenge=([\w-]{43})$/.exec(location ?? '')?.[1]
  assert(challenge, String(location))
  assert.equal((await next.session()).status, 401)
  const code = factor.recoveryCodes[0] ?? ''
  assert.equal((await enterCode(annals, { challenge, code })).status, 200)
})

/** A member with a second factor whose account isn't linked yet. */
async function createUnlinkedOwner() {
  const owner = await createKnownOwner()
  const { call } = await enter(annals, owner.company.user)
  const { password } = owner.company.user
  const { recoveryCodes } = await enableFactor(call, { password, nowMs: Date.now() })
  return { ...owner, recoveryCodes }
}

/** The first step of a sign-in. Returns the challenge. */
async function challengeFor(personId: string): Promise<string> {
  const location = (await visit().signIn(personId)) ?? ''
  const challenge = /^\/app\/explorer#sign-in-challenge=([\w-]{43})$/.exec(location)?.[1]
  assert(challenge, location)
  return challenge
}

/** Without failures, which are reported at any time within a minute. */
const actionsSince = async (company: KnownCompany, first: string) => {
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  return actions.slice(actions.indexOf(first)).filter((action) => !action.endsWith('_FAILED'))
}

test('an account is linked only after the second factor', async () => {
  const { id, email, company, recoveryCodes } = await createUnlinkedOwner()
  const stranger = addPerson({ email })
  const theirs = await challengeFor(stranger.id)
  assert.equal((await enterCode(annals, { challenge: theirs, code: '000000' })).status, 401)
  const challenge = await challengeFor(id)
  const [code = '', other = ''] = recoveryCodes
  assert.equal((await enterCode(annals, { challenge, code })).status, 200)
  const linked = (await readAudit(annals, company)).filter(
    ({ action }) => action === 'IDENTITY_LINKED',
  )
  assert.deepEqual(
    linked.map(({ metadata }) => metadata.subject),
    [id],
  )
  assert.deepEqual(await actionsSince(company, 'SECOND_FACTOR_REQUESTED'), [
    'SECOND_FACTOR_REQUESTED',
    'SECOND_FACTOR_REQUESTED',
    'IDENTITY_LINKED',
    'LOGIN_SUCCEEDED',
  ])
  const late = await enterCode(annals, { challenge: theirs, code: other })
  assert.equal(late.status, 401)
  assert.match(late.json.error, /linked to another person/)
})

test('two sign-ins of one person that wait for the second factor both succeed', async () => {
  const { id, company, recoveryCodes } = await createUnlinkedOwner()
  const challenges = [await challengeFor(id), await challengeFor(id)]
  for (const [nth, challenge] of challenges.entries()) {
    const code = recoveryCodes[nth] ?? ''
    assert.equal((await enterCode(annals, { challenge, code })).status, 200)
  }
  const actions = await actionsSince(company, 'IDENTITY_LINKED')
  assert.deepEqual(actions, ['IDENTITY_LINKED', 'LOGIN_SUCCEEDED', 'LOGIN_SUCCEEDED'])
})

test('a member without a password sets up a second factor soon after signing in', async () => {
  const company = await annals.createCompany()
  const { id, email } = addPerson()
  const linkToken = await invite(company, email)
  const browser = visit()
  await browser.signIn(id, { linkToken })
  const started = await browser.call('POST', '/dashboard/second-factor', { body: {} })
  assert.equal(started.status, 201, started.text)
  await annals.app.database.db
    .updateTable('user_session')
    .set({ created_at: new Date(Date.now() - 11 * 60_000) })
    .execute()
  const late = await browser.call('POST', '/dashboard/second-factor', { body: {} })
  assert.deepEqual([late.status, late.json.code], [409, 'conflict'])
})

test('a member with a password has to send it to set up a second factor', async () => {
  const { id } = await createKnownOwner()
  const browser = visit()
  await browser.signIn(id)
  const refused = await browser.call('POST', '/dashboard/second-factor', { body: {} })
  assert.deepEqual([refused.status, refused.json.details[0].path], [400, '/currentPassword'])
})

test('two sign-ins of a new person at once create one account', async () => {
  const company = await annals.createCompany()
  const { id, email } = addPerson()
  const linkToken = await invite(company, email)
  const browsers = [visit(), visit()]
  const paths: string[] = []
  for (const browser of browsers) {
    paths.push(await browser.authorize(await browser.start({ linkToken }), id))
  }
  const results = await Promise.all(
    browsers.map((browser, nth) => browser.finish(paths[nth] ?? '')),
  )
  const locations = results.map(({ location }) => location ?? '').toSorted()
  assert.deepEqual(locations, ['/app/explorer', '/app/explorer#sign-in=has_account'])
})
