import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { OPERATION_GATES } from '../../src/edge/v1/routes.ts'
import { newId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { issueKey } from '../../src/tenancy/key/issue-key.ts'
import {
  KEY_PERMISSIONS,
  type KeyPermission,
  SCOPE_PERMISSIONS,
} from '../../src/tenancy/key/key-permissions.ts'
import { KEY_SCOPES, type KeyScope } from '../../src/tenancy/principal.ts'
import { readCommitted, walk } from '../contract/driver.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { makeExport } from '../harness/export/exports.ts'
import { startTestApp, type TestApp, type TestResponse } from '../harness/app/start-app.ts'
import { ANY_DESTINATION } from '../harness/webhook/webhooks.ts'

await using stack = new AsyncDisposableStack()
const annals = stack.use(await startTestApp({ role: 'api', env: ANY_DESTINATION }))
const kept = stack.move()
after(() => kept.disposeAsync())

/** A new key, limited to these permissions. */
async function limitedKey(
  { company, workspace }: CreatedCompany,
  scope: KeyScope,
  permissions: KeyPermission[],
): Promise<string> {
  const workspaceId = scope === 'WORKSPACE' ? workspace.id : null
  const options = { companyId: company.id, workspaceId, name: 'Limited', permissions }
  const { text } = await annals.app.database.db
    .transaction()
    .execute((trx) => issueKey(trx, { ...options, expiresAt: null }, Date.now()))
  return text
}

const without = (missing: KeyPermission) => KEY_PERMISSIONS.filter((name) => name !== missing)

function assertMissing(response: TestResponse, permission: KeyPermission, about: string): void {
  const { status, json, text } = response
  assert.deepEqual([status, json.code], [403, 'insufficient_scope'], `${about}: ${text}`)
  const sentence = `This key doesn't have the permission ${permission}. `
  assert(json.error.startsWith(sentence), `${about}: ${json.error}`)
}

const OPERATIONS = walk(readCommitted()).flatMap(({ operationId, method, path }) => {
  const gate = OPERATION_GATES.get(operationId)
  return gate ? [{ operationId, method, path: path.replaceAll(/\{\w+\}/g, newId()), gate }] : []
})

test('every operation requires a permission, except those about the key and its workspaces', () => {
  assert.equal(OPERATIONS.length, OPERATION_GATES.size)
  assert.deepEqual(
    OPERATIONS.filter(({ gate }) => gate.permission === null).map(({ operationId }) => operationId),
    [
      'listWorkspaces',
      'getWorkspace',
      'listProjects',
      'createWorkspaceKey',
      'rotateKey',
      'getKeyStatus',
    ],
  )
})

test('a scope allows exactly the permissions that its operations require', () => {
  for (const scope of KEY_SCOPES) {
    const gates = [...OPERATION_GATES.values()].filter((gate) => (gate.scope ?? scope) === scope)
    const required = KEY_PERMISSIONS.filter((name) =>
      gates.some((gate) => gate.permission === name),
    )
    // Only a company key can see the system workspace.
    const audit = scope === 'COMPANY' ? (['audit'] as const) : []
    assert.deepEqual(SCOPE_PERMISSIONS[scope], [...required, ...audit])
  }
})

test('an operation refuses a key without its permission and names it, and accepts one with nothing else', async () => {
  const tenant = await annals.createCompany()
  for (const scope of KEY_SCOPES) {
    for (const permission of SCOPE_PERMISSIONS[scope]) {
      const excluded = await limitedKey(tenant, scope, without(permission))
      const included = await limitedKey(tenant, scope, [permission])
      for (const { operationId, method, path, gate } of OPERATIONS) {
        if (gate.permission !== permission || (gate.scope ?? scope) !== scope) continue
        const about = `${scope} ${operationId}`
        assertMissing(await annals.call(method, path, { key: excluded }), permission, about)
        const { status, text } = await annals.call(method, path, { key: included })
        assert(status !== 403, `${about}: ${text}`)
      }
    }
  }
})

test('the refusal comes before the body is read', async () => {
  const tenant = await annals.createCompany()
  const key = await limitedKey(tenant, 'WORKSPACE', ['events:read'])
  assertMissing(await annals.call('POST', '/v1/events', { key, text: '{' }), 'events:write', 'body')
})

test('a write-only key can send events and retry them, but not read them', async () => {
  const tenant = await annals.createCompany()
  const key = await limitedKey(tenant, 'WORKSPACE', ['events:write'])
  const event = { category: 'c', action: 'a', idempotencyKey: 'one' }
  const first = await annals.call('POST', '/v1/events', { key, body: event })
  const again = await annals.call('POST', '/v1/events', { key, body: event })
  assert.deepEqual([first.status, again.status, again.json.id], [201, 200, first.json.id])
  const batch = await annals.call('POST', '/v1/events/batch', { key, body: { events: [event] } })
  assert.deepEqual(batch.json.results, [{ id: first.json.id, status: 200 }])
  for (const path of ['/v1/events', `/v1/events/${first.json.id}`]) {
    assertMissing(await annals.call('GET', path, { key }), 'events:read', path)
  }
})

test('the key status lists what the key can do, and needs no permission', async () => {
  const tenant = await annals.createCompany()
  const statusOf = async (key: string) =>
    (await annals.call('GET', '/v1/keys/status', { key })).json.permissions
  assert.deepEqual(await statusOf(tenant.companyKey), SCOPE_PERMISSIONS.COMPANY)
  assert.deepEqual(await statusOf(tenant.workspaceKey), SCOPE_PERMISSIONS.WORKSPACE)
  const limited = await limitedKey(tenant, 'COMPANY', ['audit', 'events:write', 'exports'])
  assert.deepEqual(await statusOf(limited), ['exports', 'audit'])
  for (const end of ['', `/${tenant.workspace.id}`, `/${tenant.workspace.id}/projects`]) {
    assert.equal((await annals.call('GET', `/v1/workspaces${end}`, { key: limited })).status, 200)
  }
})

/** A company whose system workspace has an event, an export and a webhook. */
async function createAuditedTenant() {
  const tenant = await annals.createCompany()
  const { companyKey: key } = tenant
  const { json } = await annals.call('GET', '/v1/workspaces', { key })
  const { id: systemId } = json.workspaces.find(({ system }: { system: boolean }) => system)
  const jobId = await makeExport(annals, key, { filters: { workspaceId: systemId } })
  const hook = await annals.call('POST', `/v1/workspaces/${systemId}/webhooks`, {
    key,
    body: { url: 'http://127.0.0.1:9/hook' },
  })
  assert.equal(hook.status, 201, hook.text)
  const events = await annals.call('GET', `/v1/events?workspaceId=${systemId}`, { key })
  return {
    tenant,
    systemId: String(systemId),
    jobId,
    webhookId: String(hook.json.id),
    eventId: String(events.json.data[0].id),
  }
}

type Audited = Awaited<ReturnType<typeof createAuditedTenant>>

/** Requests that name the system workspace, or something that belongs to it. */
function systemRequests({ systemId, jobId, webhookId }: Omit<Audited, 'tenant' | 'eventId'>) {
  const filters = { workspaceId: systemId }
  const body = { source: 'HOT', format: 'JSONL', filters }
  const window = {
    from: new Date(Date.now() - 60_000).toISOString(),
    to: new Date().toISOString(),
  }
  const hook = `/v1/webhooks/${webhookId}`
  const delivery = `${hook}/deliveries/${newId()}`
  return [
    ['GET', `/v1/events?workspaceId=${systemId}`],
    ['POST', '/v1/exports', body],
    ['POST', '/v1/exports/preflight', body],
    ['GET', `/v1/exports/${jobId}`],
    ['GET', `/v1/exports/${jobId}/download`],
    ['GET', `/v1/exports/${jobId}/manifest`],
    ['POST', `/v1/exports/${jobId}/rerun`],
    ['POST', `/v1/exports/${jobId}/cancel`],
    ['GET', `/v1/workspaces/${systemId}/feed`],
    ['GET', `/v1/workspaces/${systemId}/event-types`],
    ['GET', `/v1/workspaces/${systemId}/checkpoint`],
    ['GET', `/v1/workspaces/${systemId}/consistency?from=0`],
    ['GET', `/v1/workspaces/${systemId}/tlog/checkpoint`],
    // Text that isn't a tile is as unknown as a tile that the tree doesn't have.
    ['GET', `/v1/workspaces/${systemId}/tlog/tile/${newId()}`],
    ['GET', `/v1/workspaces/${systemId}/webhooks`],
    ['POST', `/v1/workspaces/${systemId}/webhooks`, { url: 'http://127.0.0.1:9/hook' }],
    ['GET', hook],
    ['PATCH', hook, { secretLabel: 'label' }],
    ['POST', `${hook}/enable`],
    ['POST', `${hook}/disable`],
    ['POST', `${hook}/rotate-secret`],
    ['POST', `${hook}/finish-rotation`],
    ['POST', `${hook}/test`],
    ['GET', `${hook}/deliveries`],
    ['GET', delivery],
    ['POST', `${delivery}/redeliver`],
    ['POST', `${hook}/redeliver`, window],
    ['DELETE', hook],
  ] as const
}

/** Operations with the same pattern are the same operation. */
const patternOf = (method: string, path: string) =>
  `${method} ${path.replace(/\?.*/, '').replaceAll(/[0-9a-f-]{36}/g, 'id')}`

function permissionOf(method: string, path: string): KeyPermission {
  const pattern = patternOf(method, path)
  const found = OPERATIONS.find(
    (operation) => patternOf(operation.method, operation.path) === pattern,
  )
  assert(found?.gate.permission, pattern)
  return found.gate.permission
}

test('whatever names the system workspace requires the permission audit, and the operation’s own', async () => {
  const audited = await createAuditedTenant()
  const { tenant } = audited
  const excluded = await limitedKey(tenant, 'COMPANY', without('audit'))
  for (const [method, path, body] of systemRequests(audited)) {
    const response = await annals.call(method, path, { key: excluded, body })
    assertMissing(response, 'audit', `${method} ${path}`)
    const own = permissionOf(method, path)
    const key = await limitedKey(tenant, 'COMPANY', without(own))
    assertMissing(await annals.call(method, path, { key, body }), own, `${method} ${path}`)
  }
  const included = await limitedKey(tenant, 'COMPANY', [...SCOPE_PERMISSIONS.COMPANY])
  for (const [method, path, body] of systemRequests(audited)) {
    const { status, text } = await annals.call(method, path, { key: included, body })
    assert(status !== 403, `${method} ${path}: ${text}`)
  }
})

test('the requests above include every operation that can name the system workspace', () => {
  const ids = { systemId: newId(), jobId: newId(), webhookId: newId() }
  const tested = systemRequests(ids).map(([method, path]) => patternOf(method, path))
  const expected = OPERATIONS.filter(
    ({ operationId, gate }) =>
      gate.permission !== null &&
      gate.scope !== 'WORKSPACE' &&
      // Tested below: the first two respond with 404, and the last doesn't name a workspace.
      !['getEvent', 'getEventProof', 'listExports'].includes(operationId),
  ).map(({ method, path }) => patternOf(method, path))
  assert.deepEqual(tested.toSorted(), expected.toSorted())
})

test('an event of the system workspace looks unknown to a key without audit', async () => {
  const { tenant, eventId } = await createAuditedTenant()
  const key = await limitedKey(tenant, 'COMPANY', without('audit'))
  const get = async (id: string, end = '') => {
    const path = `/v1/events/${id}${end}`
    const { status, text, headers, json } = await annals.call('GET', path, { key })
    return {
      status,
      body: text.replaceAll(json.traceId, 'trace'),
      headers: [...headers].filter(([name]) => !/^(x-trace-id|date)$/.test(name)),
    }
  }
  const unknown = await get(newId())
  assert.equal(unknown.status, 404)
  assert.deepEqual(await get(eventId), unknown)
  assert.deepEqual(await get(eventId, '/proof'), unknown)
  const allowed = await limitedKey(tenant, 'COMPANY', ['events:read', 'audit'])
  assert.equal((await annals.call('GET', `/v1/events/${eventId}`, { key: allowed })).status, 200)
})

test('lists contain nothing of the system workspace for a key without audit', async () => {
  const { tenant, jobId } = await createAuditedTenant()
  const key = await limitedKey(tenant, 'COMPANY', without('audit'))
  const own = await makeExport(annals, key, { filters: { workspaceId: tenant.workspace.id } })
  const all = await makeExport(annals, key)
  const idsFor = async (reader: string) => {
    const { json } = await annals.call('GET', '/v1/exports', { key: reader })
    return json.data.map(({ id }: { id: string }) => id)
  }
  assert.deepEqual(await idsFor(key), [all, own])
  assert.deepEqual(await idsFor(tenant.companyKey), [all, own, jobId])
  const events = await annals.call('GET', '/v1/events', { key })
  assert.deepEqual(events.json.data, [])
  const file = await annals.call('GET', `/v1/exports/${all}/download`, { key })
  assert.deepEqual([file.status, file.text], [200, ''])
})

test('the new key of a rotation has the same permissions', async () => {
  const company = await annals.createCompany()
  const admin = await signInAs(annals, company, 'ADMIN')
  for (const permissions of [['events:read', 'webhooks'], undefined]) {
    const body = { name: 'Reader', scope: 'COMPANY', permissions }
    const made = await admin.call('POST', '/dashboard/keys', { body })
    const path = `/dashboard/keys/${made.json.key.id}/rotate`
    const rotated = await admin.call('POST', path, { body: {} })
    const expected = permissions ?? SCOPE_PERMISSIONS.COMPANY
    for (const { json } of [made, rotated]) {
      assert.deepEqual(json.key.permissions, expected)
      const status = await annals.call('GET', '/v1/keys/status', { key: json.secret })
      assert.deepEqual(status.json.permissions, expected)
    }
    const stored = await query(
      annals.database.connection,
      `select distinct permissions from api_key where name = 'Reader'
          and id in ('${made.json.key.id}', '${rotated.json.key.id}')`,
    )
    assert.deepEqual(stored, [{ permissions: permissions ?? null }])
  }
})

test('every node enforces the permissions, and a change in the database reaches each within two seconds', async () => {
  const { clock, advance } = manualClock()
  const options = { databaseUrl: annals.database.url, role: 'api', clock } as const
  await using first = await startTestApp(options)
  await using second = await startTestApp(options)
  const tenant = await annals.createCompany()
  const key = await limitedKey(tenant, 'WORKSPACE', ['events:read', 'events:write'])
  const read = (app: TestApp) => app.call('GET', '/v1/events', { key })
  for (const app of [first, second]) assert.equal((await read(app)).status, 200)
  await query(
    annals.database.connection,
    `update api_key set permissions = '{events:write}'
      where company_id = '${tenant.company.id}' and name = 'Limited'`,
  )
  advance(2_000)
  for (const app of [first, second]) assertMissing(await read(app), 'events:read', app.url)
})
