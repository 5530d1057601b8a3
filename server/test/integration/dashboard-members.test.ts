import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { getSystemWorkspace } from '../../src/tenancy/workspace/workspace-store.ts'
import { type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { documented } from '../harness/openapi/documented.ts'
import { query } from '../harness/database/engine.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())

async function createTenant() {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const join = async (role: Parameters<typeof signInAs>[2]) => {
    const isWhole = role === 'OWNER' || role === 'ADMIN'
    const workspaces = isWhole ? [] : [company.workspace.id]
    return await documented(await signInAs(annals, company, role, workspaces))
  }
  return { company, join, owner: await join('OWNER'), admin: await join('ADMIN') }
}

type CreatedTenant = Awaited<ReturnType<typeof createTenant>>

const memberPath = ({ userId }: Member) => `/dashboard/members/${userId}`

const rolesOf = async ({ company }: CreatedTenant) => {
  const rows = await query(
    annals.database.connection,
    `select email, role from app_user where company_id = '${company.company.id}'`,
  )
  return new Map(rows.map(({ email, role }) => [String(email), String(role)]))
}

const actionsOf = async ({ company }: CreatedTenant) =>
  (await readAudit(annals, company)).map(({ action }) => action)

const comparable = ({ status, text }: TestResponse) => [
  status,
  text.replace(/"traceId":"[^"]+"/, '"traceId":""'),
]

const statusesOf = (responses: readonly TestResponse[]) =>
  responses.map(({ status }) => status).toSorted((a, b) => a - b)

test('admins see every member with their workspaces and last activity', async () => {
  const { company, join, admin } = await createTenant()
  const viewer = await join('VIEWER')
  const { status, json } = await admin.call('GET', '/dashboard/members')
  assert.equal(status, 200)
  assert.equal(json.members.length, 4)
  const [first] = json.members
  assert.deepEqual(
    [first.email, first.role, first.workspaceIds, first.lastSeenAt],
    [company.user.email, 'OWNER', null, null],
  )
  const shown = json.members.find(({ id }: { id: string }) => id === viewer.userId)
  assert.deepEqual(shown.workspaceIds, [company.workspace.id])
  assert(Date.parse(shown.lastSeenAt) > Date.now() - 60_000)
  for (const member of [viewer, await join('ANALYST')]) {
    for (const path of ['/dashboard/members', '/dashboard/invitations']) {
      const refused = await member.call('GET', path)
      assert.deepEqual([refused.status, refused.json.code], [403, 'insufficient_role'])
    }
  }
})

test('a new role and new workspaces take effect on the next request', async () => {
  const world = await createTenant()
  const { company, join, admin } = world
  const [, staging] = company.workspaces
  const member = await join('VIEWER')
  const change = async (body: object) => await admin.call('PATCH', memberPath(member), { body })
  const seen = async () => (await member.call('GET', '/dashboard/workspaces')).json.workspaces
  const other = await change({ workspaceIds: [staging?.id.toUpperCase(), staging?.id] })
  assert.deepEqual(other.json.workspaceIds, [staging?.id])
  assert.deepEqual(
    (await seen()).map(({ name }: { name: string }) => name),
    ['Staging'],
  )
  assert.equal((await change({ role: 'ANALYST' })).json.role, 'ANALYST')
  const promoted = await change({ role: 'ADMIN' })
  assert.deepEqual([promoted.json.role, promoted.json.workspaceIds], ['ADMIN', null])
  assert.equal((await seen()).length, 3)
  const demoted = await change({ role: 'VIEWER', workspaceIds: [company.workspace.id] })
  assert.deepEqual(demoted.json.workspaceIds, [company.workspace.id])
  assert.equal((await member.call('GET', '/dashboard/members')).status, 403)
  const changes = await readAudit(annals, company)
  assert.deepEqual(
    changes.map(({ action }) => action),
    Array.from({ length: 4 }, () => 'MEMBER_CHANGED'),
  )
  assert.deepEqual(changes.at(-1)?.resource, { type: 'user', id: member.userId })
  assert.deepEqual(changes.at(-1)?.metadata, {
    email: member.email,
    before: { role: 'ADMIN', workspaceIds: null },
    after: { role: 'VIEWER', workspaceIds: [company.workspace.id] },
    address: '127.0.0.1',
  })
})

test('rejects an invalid grant with a clear message', async () => {
  const world = await createTenant()
  const { company, join, admin } = world
  const systemId = await getSystemWorkspace(annals.app.database.db, company.company.id)
  const other = await createTenant()
  const member = await join('ADMIN')
  const change = async (body: object) => await admin.call('PATCH', memberPath(member), { body })
  for (const body of [
    {},
    { role: 'VIEWER' },
    { role: 'ANALYST', workspaceIds: [] },
    { role: 'ADMIN', workspaceIds: [company.workspace.id] },
    { workspaceIds: [company.workspace.id] },
    { role: 'VIEWER', workspaceIds: [systemId] },
    { role: 'VIEWER', workspaceIds: ['no-id'] },
    { role: 'GOD' },
    { role: 'VIEWER', workspaceIds: [company.workspace.id], email: 'other@example.com' },
    { role: 'VIEWER', workspaceIds: Array.from({ length: 101 }, () => newId()) },
  ]) {
    assert.equal((await change(body)).status, 400, JSON.stringify(body).slice(0, 100))
  }
  for (const foreign of [other.company.workspace.id, newId()]) {
    const workspaceIds = [company.workspace.id, foreign]
    assert.equal((await change({ role: 'VIEWER', workspaceIds })).status, 404)
    const invited = await admin.call('POST', '/dashboard/invitations', {
      body: { email: `${newId()}@example.com`, role: 'VIEWER', workspaceIds },
    })
    assert.equal(invited.status, 404)
  }
  assert.deepEqual(await actionsOf(world), [])
})

test('a removed member loses access immediately, with their sessions and private views, and shared ones stay', async () => {
  const world = await createTenant()
  const { company, join, admin } = world
  const member = await join('ANALYST')
  const { connection } = annals.database
  for (const visibility of ['PRIVATE', 'WORKSPACE']) {
    await query(
      connection,
      `insert into explorer_view (company_id, id, workspace_id, owner_id, name, visibility, query, created_at, updated_at)
       values ('${company.company.id}', gen_random_uuid(), '${company.workspace.id}', '${member.userId}',
               '${visibility}', '${visibility}', '{}', now(), now())`,
    )
  }
  assert.equal((await admin.call('DELETE', memberPath(member))).status, 204)
  assert.equal((await member.call('GET', '/dashboard/session')).status, 401)
  const views = await query(
    connection,
    `select name, owner_id from explorer_view where company_id = '${company.company.id}'`,
  )
  assert.deepEqual(views, [{ name: 'WORKSPACE', owner_id: null }])
  assert.equal((await admin.call('DELETE', memberPath(member))).status, 404)
  const [entry] = await readAudit(annals, company)
  assert.deepEqual(
    [entry?.action, entry?.metadata.email, entry?.metadata.role],
    ['MEMBER_REMOVED', member.email, 'ANALYST'],
  )
})

test('only owners can add, change or remove owners, and members cannot remove themselves', async () => {
  const world = await createTenant()
  const { join, owner, admin } = world
  const second = await join('OWNER')
  const plain = await join('ADMIN')
  const refusals = [
    () => admin.call('PATCH', memberPath(plain), { body: { role: 'OWNER' } }),
    () => admin.call('PATCH', memberPath(admin), { body: { role: 'OWNER' } }),
    () => admin.call('PATCH', memberPath(owner), { body: { role: 'ADMIN' } }),
    () => admin.call('DELETE', memberPath(owner)),
    () => admin.call('POST', `${memberPath(owner)}/reset-link`),
    () =>
      admin.call('POST', '/dashboard/invitations', {
        body: { email: `${newId()}@example.com`, role: 'OWNER' },
      }),
  ]
  for (const refusal of refusals) {
    const { status, json } = await refusal()
    assert.deepEqual([status, json.code], [403, 'insufficient_role'])
    assert.match(json.error, /requires the role OWNER/)
  }
  for (const self of [owner, admin]) {
    assert.equal((await self.call('DELETE', memberPath(self))).status, 409)
  }
  assert.deepEqual(await actionsOf(world), [])
  const promoted = await owner.call('PATCH', memberPath(plain), { body: { role: 'OWNER' } })
  assert.equal(promoted.json.role, 'OWNER')
  assert.equal((await owner.call('DELETE', memberPath(second))).status, 204)
})

test('the last owner cannot lose the role', async () => {
  const world = await createTenant()
  const { company, owner } = world
  const { json } = await owner.call('GET', '/dashboard/members')
  const firstOwner = json.members.find(
    ({ email }: { email: string }) => email === company.user.email,
  )
  assert.equal((await owner.call('DELETE', `/dashboard/members/${firstOwner.id}`)).status, 204)
  const demotion = await owner.call('PATCH', memberPath(owner), { body: { role: 'ADMIN' } })
  assert.deepEqual([demotion.status, demotion.json.code], [409, 'conflict'])
  assert.match(demotion.json.error, /last owner/)
  assert.equal((await owner.call('DELETE', memberPath(owner))).status, 409)
})

test('an owner always remains, whatever concurrent requests do', async () => {
  for (let round = 0; round < 8; round += 1) {
    const world = await createTenant()
    const { company, join, owner: first } = world
    const second = await join('OWNER')
    const { json } = await first.call('GET', '/dashboard/members')
    const firstOwner = json.members.find(
      ({ email }: { email: string }) => email === company.user.email,
    )
    await first.call('DELETE', `/dashboard/members/${firstOwner.id}`)
    const act = (by: Member, on: Member) =>
      round % 2 === 0
        ? by.call('DELETE', memberPath(on))
        : by.call('PATCH', memberPath(on), { body: { role: 'ADMIN' } })
    const responses = await Promise.all([act(first, second), act(second, first)])
    const done = responses.filter(({ status }) => status < 300)
    assert.equal(done.length, 1, responses.map(({ text }) => text).join(' '))
    const refused = responses.find(({ status }) => status >= 300)
    // Removed before or after the session check, or no longer an owner.
    assert([401, 403].includes(refused?.status ?? 0), refused?.text)
    const roles = await rolesOf(world)
    assert.equal([...roles.values()].filter((role) => role === 'OWNER').length, 1)
  }
})

test('if two admins remove each other at the same moment, one remains', async () => {
  const world = await createTenant()
  const { join, admin } = world
  const second = await join('ADMIN')
  const responses = await Promise.all([
    admin.call('DELETE', memberPath(second)),
    second.call('DELETE', memberPath(admin)),
  ])
  assert.deepEqual(statusesOf(responses), [204, 401])
  assert.deepEqual(await actionsOf(world), ['MEMBER_REMOVED'])
})

test('an invitation link is returned once, to its creator, and is not in the audit log', async () => {
  const world = await createTenant()
  const { company, admin } = world
  const email = `Ana-${newId()}@Example.com`
  const body = { email, role: 'VIEWER', workspaceIds: [company.workspace.id] }
  const { status, json, text } = await admin.call('POST', '/dashboard/invitations', { body })
  assert.equal(status, 201, text)
  assert.equal(json.isMailed, false)
  const [base, token] = json.link.split('#')
  assert.equal(base, `${annals.url}/app/link`)
  assert.match(token, /^[\w-]{43}$/)
  const { json: list, text: listed } = await admin.call('GET', '/dashboard/invitations')
  const { createdAt: _, ...shown } = list.invitations[0]
  assert.deepEqual(shown, {
    id: json.id,
    email: email.toLowerCase(),
    role: 'VIEWER',
    workspaceIds: [company.workspace.id],
    expiresAt: json.expiresAt,
  })
  const audit = await readAudit(annals, company)
  assert.equal(audit[0]?.action, 'MEMBER_INVITED')
  for (const text of [listed, JSON.stringify(audit)]) assert(!text.includes(token))
  const used = await annals.call('POST', '/dashboard/links/use', {
    body: { token, password: 'a long enough pass phrase' },
  })
  assert.equal(used.status, 200, used.text)
  assert.deepEqual(
    used.json.workspaces.map(({ name }: { name: string }) => name),
    ['Production'],
  )
  assert.deepEqual((await admin.call('GET', '/dashboard/invitations')).json.invitations, [])
})

test('invitations cannot flood strangers with mail', async () => {
  const { admin } = await createTenant()
  const email = `${newId()}@example.com`
  const body = { email, role: 'ADMIN' }
  const invite = () => admin.call('POST', '/dashboard/invitations', { body })
  const startedAtMs = performance.now()
  let count = 0
  let response = await invite()
  for (; response.status === 201; response = await invite()) count += 1
  // One more every 30 seconds, if the requests take that long.
  const refilled = Math.floor((performance.now() - startedAtMs) / 30_000)
  assert(count >= 100 && count <= 100 + refilled, `${count} invitations`)
  assert.deepEqual([response.status, response.json.code], [429, 'rate_limited'])
  assert(Number(response.headers.get('retry-after')) > 0)
})

test('an invitation looks the same if the address has an account in another company', async () => {
  const world = await createTenant()
  const { admin, company } = world
  const other = await createTenant()
  const invite = async (email: string) =>
    await admin.call('POST', '/dashboard/invitations', { body: { email, role: 'ADMIN' } })
  const fresh = await invite(`${newId()}@example.com`)
  const taken = await invite(other.owner.email.toUpperCase())
  assert.deepEqual([fresh.status, taken.status], [201, 201])
  assert.deepEqual(Object.keys(taken.json), Object.keys(fresh.json))
  const { json } = await admin.call('GET', '/dashboard/invitations')
  assert.equal(json.invitations.length, 2)
  assert.deepEqual(await actionsOf(world), ['MEMBER_INVITED', 'MEMBER_INVITED'])

  // Opening the link reveals nothing either. Using it gets a 409 and changes nothing.
  const token = new URL(taken.json.link).hash.slice(1)
  const looked = await annals.call('POST', '/dashboard/links/look', { body: { token } })
  assert.equal(looked.json.companyName, company.company.name)
  const used = await annals.call('POST', '/dashboard/links/use', {
    body: { token, password: 'staple battery' },
  })
  assert.deepEqual([used.status, used.json.code], [409, 'conflict'])
  assert.match(used.json.error, /^There is already an account for/)
  assert.equal(used.headers.get('set-cookie'), null)
  assert.equal((await other.owner.call('GET', '/dashboard/session')).status, 200)
  const known = await invite(world.owner.email)
  assert.deepEqual(
    [known.status, known.json.error],
    [409, `${world.owner.email} is already a member.`],
  )
})

test('rejects invalid invitations with a clear message', async () => {
  const world = await createTenant()
  const { company, admin } = world
  const email = `${newId()}@example.com`
  for (const body of [
    {},
    { email },
    { email: 'nobody', role: 'ADMIN' },
    { email: `${'x'.repeat(400)}@example.com`, role: 'ADMIN' },
    { email, role: 'VIEWER' },
    { email, role: 'ADMIN', workspaceIds: [company.workspace.id] },
    { email, role: 'ADMIN', companyId: newId() },
  ]) {
    const { status } = await admin.call('POST', '/dashboard/invitations', { body })
    assert.equal(status, 400, JSON.stringify(body).slice(0, 80))
  }
  assert.deepEqual(await actionsOf(world), [])
})

test('a withdrawn invitation is invalid, and a second one replaces the first', async () => {
  const world = await createTenant()
  const { admin } = world
  const invite = () =>
    admin.call('POST', '/dashboard/invitations', { body: { email, role: 'ADMIN' } })
  const email = `${newId()}@example.com`
  const first = await invite()
  const second = await invite()
  const use = (link: string) =>
    annals.call('POST', '/dashboard/links/use', {
      body: { token: link.split('#')[1], password: 'a long enough pass phrase' },
    })
  assert.equal((await use(first.json.link)).status, 404)
  const path = `/dashboard/invitations/${second.json.id}`
  assert.equal((await admin.call('DELETE', path)).status, 204)
  assert.equal((await use(second.json.link)).status, 404)
  assert.equal((await admin.call('DELETE', path)).status, 404)
  assert.deepEqual(await actionsOf(world), [
    'MEMBER_INVITED',
    'MEMBER_INVITED',
    'INVITATION_WITHDRAWN',
  ])
})

test('an admin can create a reset link for other members, but not for themselves', async () => {
  const world = await createTenant()
  const { company, join, admin } = world
  const member = await join('VIEWER')
  const path = `${memberPath(member)}/reset-link`
  const { status, json } = await admin.call('POST', path)
  assert.equal(status, 201)
  const token = json.link.split('#')[1]
  const used = await annals.call('POST', '/dashboard/links/use', {
    body: { token, password: 'a long enough pass phrase' },
  })
  assert.equal(used.status, 200, used.text)
  assert.equal((await member.call('GET', '/dashboard/session')).status, 401)
  const audit = await readAudit(annals, company)
  assert.equal(audit[0]?.action, 'PASSWORD_RESET_REQUESTED')
  assert(!JSON.stringify(audit).includes(token))
  assert.equal((await admin.call('POST', `${memberPath(admin)}/reset-link`)).status, 409)
})

const openLink = (link: string) =>
  annals.call('POST', '/dashboard/links/use', {
    body: { token: link.split('#')[1], password: 'a long enough pass phrase' },
  })

test('a reset link ends when its member becomes an owner', async () => {
  const { owner, admin, join } = await createTenant()
  const member = await join('ANALYST')
  const { json } = await admin.call('POST', `${memberPath(member)}/reset-link`)
  await owner.call('PATCH', memberPath(member), { body: { role: 'OWNER' } })
  assert.equal((await openLink(json.link)).status, 404)
})

test('the links that a member created for others end when they are removed or get a lower role', async () => {
  const { company, owner, join } = await createTenant()
  const member = await join('VIEWER')
  const body = { role: 'VIEWER', workspaceIds: [company.workspace.id] }
  for (const end of ['DELETE', 'PATCH']) {
    const former = await join('ADMIN')
    const reset = await former.call('POST', `${memberPath(member)}/reset-link`)
    const invitation = await former.call('POST', '/dashboard/invitations', {
      body: { email: `${newId()}@example.com`, role: 'ADMIN' },
    })
    const kept = await owner.call('POST', `${memberPath(member)}/reset-link`)
    await owner.call(end, memberPath(former), end === 'PATCH' ? { body } : {})
    assert.equal((await openLink(reset.json.link)).status, 404, end)
    assert.equal((await openLink(invitation.json.link)).status, 404, end)
    assert.equal((await openLink(kept.json.link)).status, 200, end)
  }
})

test('only an owner can withdraw or replace the invitation of an owner', async () => {
  const world = await createTenant()
  const { owner, admin } = world
  const email = `${newId()}@example.com`
  const invite = (by: Member, role: string) =>
    by.call('POST', '/dashboard/invitations', { body: { email, role } })
  const { json } = await invite(owner, 'OWNER')
  const withdrawn = await admin.call('DELETE', `/dashboard/invitations/${json.id}`)
  assert.equal(withdrawn.json.code, 'insufficient_role')
  assert.equal((await invite(admin, 'ADMIN')).json.code, 'insufficient_role')
  assert.equal((await openLink(json.link)).json.user.role, 'OWNER')
  assert.deepEqual(await actionsOf(world), ['MEMBER_INVITED', 'MEMBER_JOINED', 'LOGIN_SUCCEEDED'])
})

test('an invited address can be used to sign in', async () => {
  const { admin } = await createTenant()
  const body = { email: `${'a'.repeat(60)}@${'b'.repeat(190)}.com`, role: 'ADMIN' }
  assert.equal((await admin.call('POST', '/dashboard/invitations', { body })).status, 400)
})

test('members and invitations of another company get the same response as unknown ones', async () => {
  const world = await createTenant()
  const { admin, company } = world
  const other = await createTenant()
  const invited = await other.admin.call('POST', '/dashboard/invitations', {
    body: { email: `${newId()}@example.com`, role: 'ADMIN' },
  })
  const stranger = await other.join('VIEWER')
  const body = { role: 'VIEWER', workspaceIds: [company.workspace.id] }
  const requests: ((id: string) => Promise<TestResponse>)[] = [
    (id) => admin.call('PATCH', `/dashboard/members/${id}`, { body }),
    (id) => admin.call('DELETE', `/dashboard/members/${id}`),
    (id) => admin.call('POST', `/dashboard/members/${id}/reset-link`),
    (id) => admin.call('DELETE', `/dashboard/invitations/${id}`),
  ]
  for (const send of requests) {
    const unknown = comparable(await send(newId()))
    assert.equal(unknown[0], 404)
    for (const id of [stranger.userId, other.owner.userId, invited.json.id, 'no-id']) {
      assert.deepEqual(comparable(await send(id)), unknown)
    }
  }
  assert.deepEqual(await actionsOf(world), [])
  assert.equal((await stranger.call('GET', '/dashboard/session')).status, 200)
})

test('changing members requires a session, and is rejected from other sites', async () => {
  const world = await createTenant()
  const { admin, join } = world
  const member = await join('VIEWER')
  const path = memberPath(member)
  const anybody = await annals.call('DELETE', path)
  assert.deepEqual([anybody.status, anybody.json.code], [401, 'not_signed_in'])
  const withKey = await annals.call('DELETE', path, { key: world.company.companyKey })
  assert.equal(withKey.status, 401)
  const crossSite = await admin.call('DELETE', path, {
    headers: { 'sec-fetch-site': 'cross-site' },
  })
  assert.deepEqual([crossSite.status, crossSite.json.code], [403, 'cross_site'])
  assert.deepEqual(await actionsOf(world), [])
})
