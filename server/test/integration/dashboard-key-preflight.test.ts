import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import type { Plan } from '../../src/tenancy/plans.ts'
import { readCommitted, walk } from '../contract/driver.ts'
import { type Member, signInAs } from '../harness/dashboard/dashboard.ts'
import { documented } from '../harness/openapi/documented.ts'
import { query } from '../harness/database/engine.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'

await using stack = new AsyncDisposableStack()
const annals = stack.use(await startTestApp())
/** Failed authentications are limited per address, and there are hundreds here. */
const unlimited = stack.use(await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } }))
const kept = stack.move()
after(() => kept.disposeAsync())

async function createTenant(app: TestApp, plan: Plan, allowlist: string[] = ['127.0.0.1/32']) {
  const company = await app.createCompany({ plan, allowlist })
  const admin = await documented(await signInAs(app, company, 'ADMIN'))
  const create = async (scope: string, permissions?: string[]) => {
    const workspaceId = scope === 'WORKSPACE' ? company.workspace.id : undefined
    const { json } = await admin.call('POST', '/dashboard/keys', {
      body: { name: scope, scope, workspaceId, permissions },
    })
    return { id: String(json.key.id), text: String(json.secret) }
  }
  return { company, admin, create }
}

const ask = (member: Member, body: { keyId: string; operation: string; address?: string }) =>
  member.call('POST', '/dashboard/keys/preflight', { body })

/** Every operation of the contract that requires a key. */
const OPERATIONS = walk(readCommitted()).filter(({ responses }) => responses['401'] !== undefined)
const GATE_CODES = [
  'invalid_api_key',
  'expired_api_key',
  'insufficient_scope',
  'ip_not_allowed',
  'plan_required',
  'dashboard_only',
]

const ENDS = {
  ROTATING: "grace_until = now() + interval '1 hour'",
  EXPIRED: "expires_at = now() - interval '1 hour'",
  REVOKED: 'revoked_at = now()',
  REPLACED: "grace_until = now() - interval '1 hour'",
}

/** Runs the preflight and then the call, for every operation. */
async function compareAll(admin: Member, key: { id: string; text: string }): Promise<void> {
  for (const { operationId, method, path } of OPERATIONS) {
    const { json } = await ask(admin, { keyId: key.id, operation: operationId })
    const url = path.replaceAll(/\{\w+\}/g, newId())
    const { status, json: body } = await unlimited.call(method, url, { key: key.text })
    const about = `${operationId}: ${JSON.stringify(json)}`
    if (json.allowed) {
      assert(!GATE_CODES.includes(body?.code), about)
    } else {
      assert.deepEqual([json.refusal.status, json.refusal.code], [status, body.code], about)
      if (status === 403) assert.equal(json.refusal.message, body.error, about)
    }
  }
}

for (const plan of ['FREE', 'STARTER', 'PRO'] as const) {
  test(`the preflight matches the response of a call, for every operation, on ${plan}`, async () => {
    for (const allowlist of [['127.0.0.1/32'], ['192.0.2.0/24']]) {
      const { admin, create } = await createTenant(unlimited, plan, allowlist)
      for (const scope of ['WORKSPACE', 'COMPANY']) await compareAll(admin, await create(scope))
    }
  })
}

for (const [state, change] of Object.entries(ENDS)) {
  test(`the preflight matches the response of a call, for a key that is ${state}`, async () => {
    const { admin, create } = await createTenant(unlimited, 'PRO')
    const key = await create('COMPANY')
    await query(
      unlimited.database.connection,
      `update api_key set ${change} where id = '${key.id}'`,
    )
    await compareAll(admin, key)
  })
}

test('the preflight matches the response of a call, for keys with a single permission', async () => {
  const { admin, create } = await createTenant(unlimited, 'PRO')
  for (const permission of ['events:read', 'exports', 'webhooks', 'audit']) {
    await compareAll(admin, await create('COMPANY', [permission]))
  }
  for (const permission of ['events:write', 'events:read', 'exports']) {
    await compareAll(admin, await create('WORKSPACE', [permission]))
  }
})

test('lists the checks in order and reports the first that fails', async () => {
  const { admin, create, company } = await createTenant(annals, 'STARTER')
  const { id } = await create('WORKSPACE')
  const { json } = await ask(admin, {
    keyId: id,
    operation: 'createWebhook',
    address: '203.0.113.9',
  })
  assert.equal(json.allowed, false)
  assert.deepEqual(
    json.gates.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]),
    [
      ['exists', true],
      ['status', true],
      ['scope', false],
      ['permission', false],
      ['allowlist', false],
      ['plan', false],
      ['dashboard', true],
    ],
  )
  assert.deepEqual(json.refusal, {
    gate: 'scope',
    status: 403,
    code: 'insufficient_scope',
    message: 'This key has workspace scope. Use a company key for this operation.',
  })
  assert.match(json.gates[4].message, /203\.0\.113\.9 is not on/)
  assert.match(json.rateLimit, /STARTER plan allows 200/)
  const own = await ask(admin, { keyId: id, operation: 'createEvent' })
  assert.deepEqual(
    [own.json.allowed, own.json.refusal, own.json.address],
    [true, null, '127.0.0.1'],
  )
  for (const { message } of own.json.gates) assert.match(message, /^[A-Z].*\.$/)
  const { rows } = await annals.app.database.pool.query(
    'select 1 from api_key_use u join api_key k on k.id = u.key_id where k.company_id = $1',
    [company.company.id],
  )
  assert.deepEqual(rows, [], 'a preflight does not count as use of the key')
})

test('rejects an unknown operation or an invalid address', async () => {
  const { admin, create } = await createTenant(annals, 'PRO')
  const { id: keyId } = await create('COMPANY')
  for (const body of [
    { keyId, operation: 'getSession' },
    { keyId, operation: 'listKeys' },
    { keyId, operation: '' },
    { keyId: 'x', operation: 'listEvents' },
    { keyId, operation: 'listEvents', address: 'example.com' },
    { keyId, operation: 'listEvents', address: '127.1' },
    { keyId, operation: 'listEvents', address: '10.0.0.0/8' },
  ]) {
    assert.equal((await ask(admin, body)).status, 400, JSON.stringify(body))
  }
  const mapped = await ask(admin, {
    keyId,
    operation: 'createWebhook',
    address: '::ffff:127.0.0.1',
  })
  assert.deepEqual([mapped.json.allowed, mapped.json.address], [true, '127.0.0.1'])
})
