import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { newId } from '../../src/platform/id.ts'
import { getSystemWorkspace } from '../../src/tenancy/workspace/workspace-store.ts'
import { type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { documented } from '../harness/openapi/documented.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())

async function createTenant(options: Parameters<typeof annals.createCompany>[0] = {}) {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'], ...options })
  const admin = await documented(await signInAs(annals, company, 'ADMIN'))
  return { company, admin, systemId: await systemOf(company) }
}

const systemOf = ({ company }: CreatedCompany) =>
  getSystemWorkspace(annals.app.database.db, company.id)

/** Everything but the trace id. */
const comparable = ({ status, text }: TestResponse) => [
  status,
  text.replace(/"traceId":"[^"]+"/, '"traceId":""'),
]

const statusesOf = (responses: readonly TestResponse[]) =>
  responses.map(({ status }) => status).toSorted((a, b) => a - b)

test('an admin sees the plan with its terms, the allowlist, the limits and their own address', async () => {
  const { company, admin } = await createTenant({ plan: 'PRO' })
  const { status, json } = await admin.call('GET', '/dashboard/company')
  assert.equal(status, 200)
  assert.equal(json.id, company.company.id)
  assert.deepEqual(json.plan, {
    name: 'PRO',
    exportRowsMax: 1_000_000,
    hasWebhooks: true,
    hotDays: 90,
    eventsPerSecondMax: 2_000,
    bytesPerDayMax: 320_000_000_000,
  })
  assert.deepEqual(json.allowlist, {
    entries: ['127.0.0.1/32', '::1/128'],
    forAllCalls: false,
    forDashboard: false,
    entriesMax: 200,
  })
  assert.deepEqual(json.bounds.workspaces, { used: 2, max: 100 })
  assert.deepEqual(json.bounds.members, { used: 2, max: 500 })
  assert.deepEqual(json.bounds.companyKeys, { used: 1, max: 100 })
  assert.deepEqual([json.address, json.isAddressOnAllowlist], ['127.0.0.1', true])
})

test('a member of one workspace sees neither the allowlist nor the usage of other workspaces', async () => {
  const { company } = await createTenant()
  const viewer = await documented(await signInAs(annals, company, 'VIEWER', [company.workspace.id]))
  const { json } = await viewer.call('GET', '/dashboard/company')
  assert.deepEqual([json.allowlist, json.bounds], [null, null])
  const { json: list } = await viewer.call('GET', '/dashboard/workspaces')
  assert.deepEqual(
    list.workspaces.map(({ name }: { name: string }) => name),
    ['Production'],
  )
})

test('only owners and admins can change the company', async () => {
  const { company, systemId } = await createTenant()
  const [, staging] = company.workspaces
  const projects = `/dashboard/workspaces/${company.workspace.id}/projects`
  const changes = [
    ['PATCH', '/dashboard/company', { name: 'Other' }],
    ['PUT', '/dashboard/company/allowlist', { entries: [], forAllCalls: false }],
    ['POST', '/dashboard/workspaces', { name: 'Other' }],
    ['PATCH', `/dashboard/workspaces/${company.workspace.id}`, { name: 'Other' }],
    ['POST', projects, { name: 'Other' }],
    ['PATCH', `${projects}/${company.project.id}`, { name: 'Other' }],
  ] as const
  for (const role of ['ANALYST', 'VIEWER'] as const) {
    const member = await documented(await signInAs(annals, company, role, [company.workspace.id]))
    for (const [method, path, body] of changes) {
      const { status, json } = await member.call(method, path, { body })
      assert.deepEqual([status, json.code], [403, 'insufficient_role'], `${role} ${path}`)
    }
    assert.equal((await member.call('GET', projects)).status, 200)
    const unseen = [staging?.id, systemId].map((id) => `/dashboard/workspaces/${id}/projects`)
    for (const path of unseen) assert.equal((await member.call('GET', path)).status, 404)
  }
  assert.deepEqual(await readAudit(annals, company), [])
})

test('a new name takes effect immediately and is in the audit log, before and after', async () => {
  const { company, admin } = await createTenant()
  const { json } = await admin.call('PATCH', '/dashboard/company', { body: { name: '  Ácme  ' } })
  assert.equal(json.name, 'Ácme')
  await admin.call('PATCH', '/dashboard/company', { body: { name: 'Ácme' } })
  const [entry, ...others] = await readAudit(annals, company)
  assert.deepEqual(others, [], 'a change without effect is not recorded')
  assert.equal(entry?.action, 'COMPANY_CHANGED')
  assert.deepEqual(entry.resource, { type: 'company', id: company.company.id })
  assert.deepEqual(entry.metadata, {
    before: { name: 'Acme' },
    after: { name: 'Ácme' },
    address: '127.0.0.1',
  })
  assert.equal(entry.actor.email, admin.email)
})

const BAD_NAMES = ['', '   ', 'x'.repeat(201), 'a\nb', 'a\u2028b', 'a\u0000b', 7, null]

test('rejects an invalid name with a clear message, wherever one is given', async () => {
  const { company, admin } = await createTenant()
  const projects = `/dashboard/workspaces/${company.workspace.id}/projects`
  const routes = [
    ['PATCH', '/dashboard/company'],
    ['POST', '/dashboard/workspaces'],
    ['PATCH', `/dashboard/workspaces/${company.workspace.id}`],
    ['POST', projects],
    ['PATCH', `${projects}/${company.project.id}`],
  ] as const
  for (const [method, path] of routes) {
    for (const name of BAD_NAMES) {
      const { status, json } = await admin.call(method, path, { body: { name } })
      assert.equal(status, 400, `${path} ${JSON.stringify(name)}`)
      assert.equal(json.details[0].path, '/name')
    }
    const { status } = await admin.call(method, path, { body: { name: 'Other', plan: 'FREE' } })
    assert.equal(status, 400, 'an unknown field is refused')
  }
  assert.deepEqual(await readAudit(annals, company), [])
})

const putList = (member: Member, body: object) =>
  member.call('PUT', '/dashboard/company/allowlist', { body })

test('a new allowlist is stored in one notation and applies to the running API', async () => {
  const { company, admin } = await createTenant()
  const entries = ['10.1.2.3/8', '10.0.0.0/8', '::FFFF:192.0.2.7', '2001:DB8::1/32']
  const saved = await putList(admin, { entries, forAllCalls: true, confirmAddressLeftOut: true })
  assert.equal(saved.status, 200, saved.text)
  assert.deepEqual(saved.json.allowlist.entries, ['10.0.0.0/8', '192.0.2.7/32', '2001:db8::/32'])
  assert.equal(saved.json.isAddressOnAllowlist, false)
  await eventually(async () => {
    const { status, json } = await annals.call('GET', '/v1/events', { key: company.companyKey })
    assert.deepEqual([status, json.code], [403, 'ip_not_allowed'])
  })
  await putList(admin, { entries: ['127.0.0.1'], forAllCalls: true })
  await eventually(async () => {
    const { status } = await annals.call('GET', '/v1/events', { key: company.companyKey })
    assert.equal(status, 200)
  })
  const [first, second] = await readAudit(annals, company)
  assert.deepEqual(first?.metadata, {
    before: { entries: ['127.0.0.1/32', '::1/128'], forAllCalls: false },
    after: { entries: saved.json.allowlist.entries, forAllCalls: true },
    leavesOutCaller: true,
    address: '127.0.0.1',
  })
  assert.deepEqual(second?.metadata.before, { entries: saved.json.allowlist.entries })
})

test('locking out one’s own address requires confirmation', async () => {
  const { company, admin } = await createTenant({ plan: 'PRO' })
  const refused = [
    { entries: ['192.0.2.0/24'], forAllCalls: true },
    { entries: ['192.0.2.0/24'], forAllCalls: false },
    { entries: [], forAllCalls: true },
  ]
  for (const body of refused) {
    const { status, json } = await putList(admin, body)
    assert.deepEqual([status, json.code], [409, 'conflict'], JSON.stringify(body))
    assert.match(json.error, /does not contain your current address, 127\.0\.0\.1:/)
    assert.match(json.error, /confirmAddressLeftOut/)
    const unconfirmed = await putList(admin, { ...body, confirmAddressLeftOut: false })
    assert.equal(unconfirmed.status, 400)
  }
  assert.deepEqual(await readAudit(annals, company), [])
  const taken = [
    { entries: [], forAllCalls: false },
    { entries: ['127.0.0.0/8'], forAllCalls: true },
    ...refused.map((body) => ({ ...body, confirmAddressLeftOut: true })),
  ]
  for (const body of taken) {
    assert.equal((await putList(admin, body)).status, 200, JSON.stringify(body))
  }
})

test('no confirmation is needed if no operation uses the list', async () => {
  const { admin } = await createTenant({ plan: 'STARTER' })
  const { status } = await putList(admin, { entries: ['192.0.2.0/24'], forAllCalls: false })
  assert.equal(status, 200)
})

test('rejects a list with invalid entries, or too many, with their positions', async () => {
  const { company, admin } = await createTenant()
  const entries = ['127.0.0.1', '10.0.0.0/33', 'example.com', '127.1']
  const { status, json } = await putList(admin, { entries, forAllCalls: false })
  assert.equal(status, 400)
  assert.deepEqual(
    json.details.map(({ path }: { path: string }) => path),
    ['/entries/1', '/entries/2', '/entries/3'],
  )
  const many = Array.from({ length: 201 }, (_, index) => `10.0.0.${index}`)
  for (const body of [
    { entries: many, forAllCalls: false },
    { entries: ['127.0.0.1'] },
    { entries: '127.0.0.1', forAllCalls: false },
    { entries: ['127.0.0.1'], forAllCalls: 'yes' },
    { entries: ['1'.repeat(65)], forAllCalls: false },
  ]) {
    assert.equal((await putList(admin, body)).status, 400, JSON.stringify(body).slice(0, 80))
  }
  assert.deepEqual(await readAudit(annals, company), [])
})

test('a workspace created in the dashboard accepts events, and its summary counts them', async () => {
  const { company, admin } = await createTenant()
  const made = await admin.call('POST', '/dashboard/workspaces', { body: { name: 'Sandbox' } })
  assert.equal(made.status, 201)
  const { id } = made.json
  const { createdAt: _, ...rest } = made.json
  const empty = { projects: 0, keys: 0, rotatingKeys: 0, webhooks: 0, events: 0 }
  assert.deepEqual(rest, { id, name: 'Sandbox', kind: 'CUSTOMER', ...empty })
  const projects = `/dashboard/workspaces/${id}/projects`
  const project = await admin.call('POST', projects, { body: { name: 'Billing' } })
  assert.equal(project.status, 201)
  const key = await admin.call('POST', '/dashboard/keys', {
    body: { name: 'Sandbox', scope: 'WORKSPACE', workspaceId: id },
  })
  const event = { category: 'c', action: 'a', projectId: project.json.id }
  const sent = await annals.call('POST', '/v1/events', { key: key.json.secret, body: event })
  assert.equal(sent.status, 201)
  const { json } = await admin.call('GET', '/dashboard/workspaces')
  const summary = json.workspaces.find((workspace: { id: string }) => workspace.id === id)
  assert.deepEqual([summary.projects, summary.keys, summary.events], [1, 1, 1])
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert.deepEqual(actions, ['WORKSPACE_CREATED', 'PROJECT_CREATED', 'KEY_CREATED'])
})

test('workspaces and projects can be renamed, and names stay unique', async () => {
  const { company, admin } = await createTenant()
  const workspace = `/dashboard/workspaces/${company.workspace.id}`
  const renamed = await admin.call('PATCH', workspace, { body: { name: 'Live' } })
  assert.equal(renamed.json.name, 'Live')
  const taken = await admin.call('PATCH', workspace, { body: { name: 'Staging' } })
  assert.deepEqual([taken.status, taken.json.code], [409, 'conflict'])
  assert.match(taken.json.error, /Staging is already taken/)
  const again = await admin.call('POST', '/dashboard/workspaces', { body: { name: 'Live' } })
  assert.equal(again.status, 409)
  const projects = `${workspace}/projects`
  await admin.call('POST', projects, { body: { name: 'Second' } })
  const project = `${projects}/${company.project.id}`
  assert.equal((await admin.call('PATCH', project, { body: { name: 'First' } })).status, 200)
  assert.equal((await admin.call('PATCH', project, { body: { name: 'Second' } })).status, 409)
  assert.equal((await admin.call('POST', projects, { body: { name: 'First' } })).status, 409)
  const { json } = await admin.call('GET', projects)
  assert.deepEqual(
    json.projects.map(({ name }: { name: string }) => name),
    ['First', 'Second'],
  )
  const changed = (await readAudit(annals, company)).filter(
    ({ action }) => action === 'PROJECT_CHANGED',
  )
  assert.deepEqual(
    changed.map(({ metadata }) => [metadata.before.name, metadata.after.name]),
    [['Billing', 'First']],
  )
})

test('the system workspace is listed and cannot be changed', async () => {
  const { company, admin, systemId } = await createTenant()
  const { json } = await admin.call('GET', '/dashboard/workspaces')
  const kinds = json.workspaces.map(({ kind }: { kind: string }) => kind)
  assert.deepEqual(kinds.toSorted(), ['CUSTOMER', 'CUSTOMER', 'SYSTEM'])
  const tries = [
    ['PATCH', `/dashboard/workspaces/${systemId}`, { name: 'Mine' }],
    ['POST', `/dashboard/workspaces/${systemId}/projects`, { name: 'Mine' }],
    ['POST', '/dashboard/keys', { name: 'Mine', scope: 'WORKSPACE', workspaceId: systemId }],
  ] as const
  for (const [method, path, body] of tries) {
    const { status, json: refusal } = await admin.call(method, path, { body })
    assert.deepEqual([status, refusal.code], [409, 'conflict'], path)
    assert.match(refusal.error, /This is the system workspace/)
  }
  assert.deepEqual(await readAudit(annals, company), [])
})

test('workspaces and projects of another company get the same response as unknown ones', async () => {
  const { company, admin } = await createTenant()
  const { company: other } = await createTenant()
  const own = `/dashboard/workspaces/${company.workspace.id}/projects`
  const body = { name: 'Taken over' }
  const requests: ((id: string, projectId: string) => Promise<TestResponse>)[] = [
    (id) => admin.call('PATCH', `/dashboard/workspaces/${id}`, { body }),
    (id) => admin.call('GET', `/dashboard/workspaces/${id}/projects`),
    (id) => admin.call('POST', `/dashboard/workspaces/${id}/projects`, { body }),
    (id, projectId) =>
      admin.call('PATCH', `/dashboard/workspaces/${id}/projects/${projectId}`, { body }),
    (_id, projectId) => admin.call('PATCH', `${own}/${projectId}`, { body }),
  ]
  for (const send of requests) {
    const foreign = comparable(await send(other.workspace.id, other.project.id))
    assert.equal(foreign[0], 404)
    assert.deepEqual(comparable(await send(newId(), newId())), foreign)
    assert.deepEqual(comparable(await send('no-id', 'no-id')), foreign)
  }
  for (const each of [company, other]) assert.deepEqual(await readAudit(annals, each), [])
})

test('rejects the 101st workspace and project, even with concurrent requests', async () => {
  const { company, admin } = await createTenant()
  const { connection } = annals.database
  await query(
    connection,
    `insert into workspace (id, company_id, name, kind)
     select gen_random_uuid(), '${company.company.id}', 'W' || n, 'CUSTOMER' from generate_series(1, 97) n`,
  )
  await query(
    connection,
    `insert into project (workspace_id, id, name)
     select '${company.workspace.id}', gen_random_uuid(), 'P' || n from generate_series(1, 98) n`,
  )
  for (const path of [
    '/dashboard/workspaces',
    `/dashboard/workspaces/${company.workspace.id}/projects`,
  ]) {
    const responses = await Promise.all(
      ['One', 'Two', 'Three'].map((name) => admin.call('POST', path, { body: { name } })),
    )
    assert.deepEqual(statusesOf(responses), [201, 409, 409], path)
  }
  const audit = await readAudit(annals, company)
  assert.deepEqual(audit.map(({ action }) => action).toSorted(), [
    'PROJECT_CREATED',
    'WORKSPACE_CREATED',
  ])
})

test('a list whose table is missing is empty, and a header names the table', async () => {
  await using app = await startTestApp()
  const company = await app.createCompany()
  const owner = await signInAs(app, company, 'OWNER')
  await query(app.database.connection, 'drop table one_time_link cascade')
  const invitations = await owner.call('GET', '/dashboard/invitations')
  assert.deepEqual([invitations.status, invitations.json], [200, { invitations: [] }])
  assert.equal(invitations.headers.get('x-service-schema-drift'), 'one_time_link')
  await query(app.database.connection, 'drop table project cascade')
  const projects = await owner.call('GET', `/dashboard/workspaces/${company.workspace.id}/projects`)
  assert.deepEqual([projects.status, projects.json], [200, { projects: [] }])
  assert.equal(projects.headers.get('x-service-schema-drift'), 'project')
  const workspaces = await owner.call('GET', '/dashboard/workspaces')
  assert.deepEqual([workspaces.status, workspaces.json], [200, { workspaces: [] }])
  assert.equal(workspaces.headers.get('x-service-schema-drift'), 'project')
  await query(app.database.connection, 'drop table api_key_use, api_key cascade')
  const keys = await owner.call('GET', '/dashboard/keys')
  assert.deepEqual([keys.status, keys.json], [200, { data: [], nextCursor: null }])
  assert.equal(keys.headers.get('x-service-schema-drift'), 'api_key')
})
