import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_WEBHOOK_DESTINATIONS: 'any' } })
after(() => annals[Symbol.asyncDispose]())

type World = { company: CreatedCompany; owner: Member }
type Change = { path: string; body: object; before: object; after: object; others?: object }

/**
 * For each route that changes something: a request of which one half changes nothing, and its audit
 * entry.
 */
const CHANGES: readonly [
  method: string,
  action: string,
  make: (world: World) => Promise<Change>,
][] = [
  ['PATCH', 'COMPANY_CHANGED', async () => renaming('/dashboard/company', 'Acme')],
  [
    'PATCH',
    'WORKSPACE_CHANGED',
    async ({ company }) => renaming(`/dashboard/workspaces/${company.workspace.id}`, 'Production'),
  ],
  [
    'PATCH',
    'PROJECT_CHANGED',
    async ({ company: { workspace, project } }) => ({
      ...renaming(`/dashboard/workspaces/${workspace.id}/projects/${project.id}`, 'Billing'),
      others: { workspaceId: workspace.id },
    }),
  ],
  ['PATCH', 'KEY_CHANGED', changeKey],
  ['PUT', 'ALLOWLIST_CHANGED', changeAllowlist],
  ['PATCH', 'MEMBER_CHANGED', changeMember],
  ['PATCH', 'WEBHOOK_CHANGED', changeWebhook],
  ['PATCH', 'VIEW_CHANGED', changeView],
  ['PATCH', 'EXPORT_TEMPLATE_CHANGED', changeTemplate],
]

for (const [method, action, make] of CHANGES) {
  test(`${action} contains the fields that changed, and is not recorded if nothing changed`, async () => {
    const company = await annals.createCompany()
    const world = { company, owner: await signInAs(annals, company, 'OWNER') }
    const { path, body, before, after: then, others = {} } = await make(world)
    const readEntries = async () =>
      (await readAudit(annals, company)).filter((entry) => entry.action === action)
    const changed = await world.owner.call(method, path, { body })
    assert.equal(changed.status, 200, changed.text)
    const again = await world.owner.call(method, path, { body })
    assert.equal(again.status, 200, again.text)
    assert.deepEqual({ ...again.json, address: null }, { ...changed.json, address: null })
    const entries = await readEntries()
    assert.equal(entries.length, 1)
    assert.deepEqual(entries[0]?.metadata, { before, after: then, ...others, address: '127.0.0.1' })
  })
}

function renaming(path: string, from: string): Change {
  return { path, body: { name: 'Other' }, before: { name: from }, after: { name: 'Other' } }
}

async function changeKey({ owner }: World): Promise<Change> {
  const made = await owner.call('POST', '/dashboard/keys', {
    body: { name: 'Till', scope: 'COMPANY' },
  })
  assert.equal(made.status, 201, made.text)
  return renaming(`/dashboard/keys/${made.json.key.id}`, 'Till')
}

async function changeAllowlist(): Promise<Change> {
  const entries = ['127.0.0.1/32', '::1/128']
  return {
    path: '/dashboard/company/allowlist',
    body: { entries, forAllCalls: true },
    before: { forAllCalls: false },
    after: { forAllCalls: true },
    others: { leavesOutCaller: false },
  }
}

async function changeMember({ company }: World): Promise<Change> {
  const workspaceIds = [company.workspace.id]
  const member = await signInAs(annals, company, 'VIEWER', workspaceIds)
  return {
    path: `/dashboard/members/${member.userId}`,
    body: { role: 'ANALYST', workspaceIds },
    before: { role: 'VIEWER' },
    after: { role: 'ANALYST' },
    others: { email: member.email },
  }
}

async function changeWebhook({ company: { workspace, project }, owner }: World): Promise<Change> {
  const url = 'https://example.com/hook'
  const made = await owner.call('POST', '/dashboard/webhooks', {
    body: { workspaceId: workspace.id, url },
  })
  assert.equal(made.status, 201, made.text)
  return {
    path: `/dashboard/webhooks/${made.json.id}`,
    body: { url, events: ['AUDIT_EVENT_CREATED'], projectId: project.id },
    before: { projectId: null },
    after: { projectId: project.id },
  }
}

async function changeView({ owner }: World): Promise<Change> {
  const query = { category: 'auth', range: '24h' }
  const body = { name: 'Sign-ins', workspaceId: null, visibility: 'PRIVATE', query }
  const made = await owner.call('POST', '/dashboard/explorer/views', { body })
  assert.equal(made.status, 201, made.text)
  return {
    path: `/dashboard/explorer/views/${made.json.id}`,
    body: { ...body, query: { range: '24h', category: 'auth' }, name: 'Logins' },
    before: { name: 'Sign-ins' },
    after: { name: 'Logins' },
  }
}

async function changeTemplate({ company: { workspace }, owner }: World): Promise<Change> {
  const body = { source: 'HOT', format: 'CSV' }
  const made = await owner.call('POST', '/dashboard/export-templates', {
    body: { name: 'Monthly', body },
  })
  assert.equal(made.status, 201, made.text)
  const narrow = { ...body, filters: { workspaceId: workspace.id } }
  return {
    path: `/dashboard/export-templates/${made.json.id}`,
    body: { name: 'Monthly', body: narrow },
    before: { body, workspaceId: null },
    after: { body: narrow, workspaceId: workspace.id },
  }
}
