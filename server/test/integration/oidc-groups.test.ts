import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { parseConfig } from '../../src/config.ts'
import { listGroups, mapGroup, unmapGroup } from '../../src/command/company/map-group.ts'
import { COMPANY_BOUNDS } from '../../src/tenancy/plans.ts'
import type { Role } from '../../src/tenancy/member/user-store.ts'
import { readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { startIdentityProvider } from '../harness/sign-in/identity-provider.ts'
import { enter as enterWithPassword } from '../harness/sign-in/login.ts'
import { OidcVisitor } from '../harness/sign-in/oidc-visitor.ts'
import { enableFactor, enterCode } from '../harness/sign-in/second-factor.ts'
import { SECRET_KEY, startTestApp } from '../harness/app/start-app.ts'

const provider = await startIdentityProvider()
after(() => provider[Symbol.asyncDispose]())
const annals = await startTestApp({
  role: 'api',
  env: { ...provider.env, ANNALS_RATE_LIMITS: 'off' },
})
after(() => annals[Symbol.asyncDispose]())
const config = parseConfig({
  ANNALS_DATABASE_URL: annals.database.url,
  ANNALS_SECRET_KEY: SECRET_KEY,
})

type Company = Awaited<ReturnType<typeof annals.createCompany>>
let persons = 0

function addPerson(groups: readonly string[], email?: string) {
  persons += 1
  const id = `person-${persons}`
  const person = { email: email ?? `${id}@example.com`, email_verified: true }
  const setGroups = (now: readonly string[]) => provider.people.set(id, { ...person, groups: now })
  setGroups(groups)
  return { id, email: person.email, setGroups }
}

/** A mapped group. The names differ by company, because people of all companies use one provider. */
async function map(company: Company, role: Role, workspace: readonly string[] = []) {
  const group = `${role} of ${company.company.id}`
  await mapGroup(config, { company: company.company.id, group, role, workspace })
  return group
}

/** Signs in, and returns the member, or why it was refused. */
async function enter(id: string) {
  const browser = new OidcVisitor(annals, provider)
  const location = (await browser.signIn(id)) ?? ''
  const problem = /#sign-in=(.+)$/.exec(location)?.[1]
  if (problem !== undefined) return problem
  const { json } = await browser.session()
  return `${json.user.role} of ${json.company.id}`
}

const actionsOf = async (company: Company) =>
  (await readAudit(annals, company)).map(({ action }) => action)

test('a mapped group makes a person a member, and leaving it removes them', async () => {
  const company = await annals.createCompany()
  const group = await map(company, 'ADMIN')
  const { id, email, setGroups } = addPerson([group, 'other'])
  assert.equal(await enter(id), `ADMIN of ${company.company.id}`)
  assert.equal(await enter(id), `ADMIN of ${company.company.id}`)
  setGroups(['other'])
  assert.equal(await enter(id), 'access_removed')
  assert.equal(await enter(id), 'no_account')
  assert.deepEqual(await actionsOf(company), [
    'GROUP_MAPPED',
    'MEMBER_JOINED',
    'IDENTITY_LINKED',
    'LOGIN_SUCCEEDED',
    'LOGIN_SUCCEEDED',
    'MEMBER_REMOVED',
  ])
  const removed = (await readAudit(annals, company)).at(-1)
  assert.deepEqual([removed?.metadata.email, removed?.metadata.via], [email, 'GROUP'])
})

test('groups grant the highest role, on the workspaces of the groups that grant it', async () => {
  const company = await annals.createCompany({ workspaces: ['One', 'Two', 'Three'] })
  const [one, two, three] = company.workspaces.map(({ id }) => id)
  assert(one && two && three)
  const viewer = await map(company, 'VIEWER', [one])
  const analyst = await map(company, 'ANALYST', [two, three])
  const { id, setGroups } = addPerson([viewer])
  const browser = new OidcVisitor(annals, provider)
  await browser.signIn(id)
  const seen = async (visitor: OidcVisitor) =>
    (await visitor.session()).json.workspaces.map((each: { id: string }) => each.id).toSorted()
  assert.deepEqual(await seen(browser), [one])
  setGroups([viewer, analyst])
  assert.equal(await enter(id), `ANALYST of ${company.company.id}`)
  assert.deepEqual(await seen(browser), [two, three].toSorted())
})

test('a group raises the role of an invited member, who gets their own role back afterwards', async () => {
  const company = await annals.createCompany()
  const member = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  const group = await map(company, 'ADMIN')
  const { id, setGroups } = addPerson([group], member.email)
  assert.equal(await enter(id), `ADMIN of ${company.company.id}`)
  setGroups([])
  assert.equal(await enter(id), `VIEWER of ${company.company.id}`)
  const changes = (await readAudit(annals, company)).filter(
    ({ action }) => action === 'MEMBER_CHANGED',
  )
  assert.deepEqual(
    changes.map(({ metadata }) => [metadata.before.role, metadata.after.role, metadata.via]),
    [
      ['VIEWER', 'ADMIN', 'GROUP'],
      ['ADMIN', 'VIEWER', 'GROUP'],
    ],
  )
})

test('a group never lowers a role', async () => {
  const company = await annals.createCompany()
  const member = await signInAs(annals, company, 'ADMIN')
  const group = await map(company, 'VIEWER', [company.workspace.id])
  const { id, setGroups } = addPerson([group], member.email)
  assert.equal(await enter(id), `ADMIN of ${company.company.id}`)
  setGroups([])
  assert.equal(await enter(id), `ADMIN of ${company.company.id}`)
})

test('a role that an owner gave in the dashboard stays when the member leaves the group', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  const group = await map(company, 'VIEWER', [company.workspace.id])
  const { id, email, setGroups } = addPerson([group])
  assert.equal(await enter(id), `VIEWER of ${company.company.id}`)
  const { json } = await owner.call('GET', '/dashboard/members')
  const member = json.members.find((each: { email: string }) => each.email === email)
  const body = { role: 'ADMIN', workspaceIds: [] }
  const changed = await owner.call('PATCH', `/dashboard/members/${member.id}`, { body })
  assert.equal(changed.status, 200, changed.text)
  setGroups([])
  assert.equal(await enter(id), `ADMIN of ${company.company.id}`)
})

test('the last owner keeps the role, and loses it once there is another owner', async () => {
  const company = await annals.createCompany()
  const group = await map(company, 'OWNER')
  const { id, setGroups } = addPerson([group])
  assert.equal(await enter(id), `OWNER of ${company.company.id}`)
  const { db } = annals.app.database
  await db.deleteFrom('app_user').where('email', '=', company.user.email).execute()
  setGroups([])
  assert.equal(await enter(id), `OWNER of ${company.company.id}`)
  await signInAs(annals, company, 'OWNER')
  assert.equal(await enter(id), 'access_removed')
})

test('groups of one company do not affect another', async () => {
  const [ours, theirs] = [await annals.createCompany(), await annals.createCompany()]
  const member = await signInAs(annals, ours, 'VIEWER', [ours.workspace.id])
  const group = await map(theirs, 'OWNER')
  const { id } = addPerson([group], member.email)
  assert.equal(await enter(id), `VIEWER of ${ours.company.id}`)
  assert.deepEqual(await actionsOf(theirs), ['GROUP_MAPPED'])
})

test('refuses a new person whose groups belong to several companies', async () => {
  const companies = [await annals.createCompany(), await annals.createCompany()]
  const groups = await Promise.all(companies.map((company) => map(company, 'ADMIN')))
  assert.equal(await enter(addPerson(groups).id), 'several_companies')
})

test('a group cannot add members to a company that is full', async () => {
  const company = await annals.createCompany()
  const group = await map(company, 'ADMIN')
  const { db } = annals.app.database
  const rows = Array.from({ length: COMPANY_BOUNDS.membersMax }, (_, nth) => ({
    id: crypto.randomUUID(),
    company_id: company.company.id,
    email: `member-${nth}-${company.company.id}@example.com`,
    password_hash: null,
    role: 'VIEWER',
  }))
  await db.insertInto('app_user').values(rows).execute()
  assert.equal(await enter(addPerson([group]).id), 'company_full')
})

test('two first sign-ins through a group at once create one account', async () => {
  const company = await annals.createCompany()
  const group = await map(company, 'ADMIN')
  const { id } = addPerson([group])
  assert.deepEqual(
    await Promise.all([enter(id), enter(id)]),
    Array.from({ length: 2 }, () => `ADMIN of ${company.company.id}`),
  )
  const joined = (await actionsOf(company)).filter((action) => action === 'MEMBER_JOINED')
  assert.equal(joined.length, 1)
})

test('the operator maps, lists and unmaps groups, and the company sees it in its log', async () => {
  const company = await annals.createCompany()
  const { id } = company.company
  const group = await map(company, 'VIEWER', [company.workspace.id])
  const [entry] = await readAudit(annals, company)
  assert.deepEqual(
    [entry?.actor.id, entry?.metadata.group, entry?.metadata.role],
    ['operator', group, 'VIEWER'],
  )
  await unmapGroup(config, { company: id, group })
  await assert.rejects(unmapGroup(config, { company: id, group }), /is not mapped/)
  await listGroups(config, { company: id })
  assert.deepEqual(await actionsOf(company), ['GROUP_MAPPED', 'GROUP_UNMAPPED'])
  const other = await annals.createCompany()
  const bad = { company: id, group: 'g', role: 'VIEWER', workspace: [] }
  for (const [options, expected] of [
    [bad, /--workspace must contain at least one/],
    [{ ...bad, workspace: [other.workspace.id] }, /--workspace must be the id/],
    [{ ...bad, role: 'ADMIN', workspace: [company.workspace.id] }, /--workspace must be empty/],
    [{ ...bad, role: 'ROOT' }, /--role must be one of/],
    [{ ...bad, company: crypto.randomUUID() }, /no company/],
    [{ ...bad, group: 'x'.repeat(201) }, /--group must have/],
  ] as const) {
    await assert.rejects(mapGroup(config, options), expected)
  }
})

test('a sign-in from an address that the company does not allow changes nothing', async () => {
  const company = await annals.createCompany({ allowlist: ['192.0.2.0/24'] })
  const group = await map(company, 'ADMIN')
  const { db } = annals.app.database
  const applyList = (isOn: boolean) =>
    db
      .updateTable('company')
      .set({ allowlist_for_dashboard: isOn })
      .where('id', '=', company.company.id)
      .execute()
  await applyList(true)
  const { id } = addPerson([group])
  assert.equal(await enter(id), 'address_not_allowed')
  assert.deepEqual(await actionsOf(company), ['GROUP_MAPPED'])
  await applyList(false)
  assert.equal(await enter(id), `ADMIN of ${company.company.id}`)
})

test('applies the groups of a member with a second factor only after the code', async () => {
  const company = await annals.createCompany()
  const { password } = company.user
  const group = await map(company, 'ADMIN')
  const { id, email } = addPerson([group])
  await annals.app.database.db
    .updateTable('app_user')
    .set({ email, role: 'VIEWER' })
    .where('company_id', '=', company.company.id)
    .execute()
  const member = await enterWithPassword(annals, { email, password })
  const { recoveryCodes } = await enableFactor(member.call, { password, nowMs: Date.now() })
  const location = (await new OidcVisitor(annals, provider).signIn(id)) ?? ''
  const challenge = /#sign-in-challenge=(.+)$/.exec(location)?.[1] ?? ''
  const roleNow = async () => (await member.call('GET', '/dashboard/session')).json.user.role
  assert.equal(await roleNow(), 'VIEWER')
  const entered = await enterCode(annals, { challenge, code: recoveryCodes[0] ?? '' })
  assert.deepEqual([entered.status, entered.json.user?.role], [200, 'ADMIN'])
  assert.equal(await roleNow(), 'ADMIN')
})
