import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { fastify, type FastifyInstance } from 'fastify'
import type { Gate } from '../../src/edge/auth/gate.ts'
import { KeyCache } from '../../src/edge/auth/key-cache.ts'
import { KeyUseRecorder } from '../../src/edge/auth/key-use-recorder.ts'
import { KeyGuard } from '../../src/edge/auth/require-key.ts'
import { ClientAddresses } from '../../src/edge/auth/client-address.ts'
import { createErrorHandler } from '../../src/edge/error-handler.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { compileRanges } from '../../src/tenancy/allowlist.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { findKeyByKid } from '../../src/tenancy/key/key-store.ts'
import { parseKeyText } from '../../src/tenancy/key/key-text.ts'
import { PLANS, type Plan } from '../../src/tenancy/plans.ts'
import { KEY_SCOPES, type KeyScope } from '../../src/tenancy/principal.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { TIMEOUT_FACTOR } from '../harness/timing/timeout-factor.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
const { db } = annals.app.database
const { clock, advance } = manualClock()
const keyUse = new KeyUseRecorder({ db, clock, monotonic: clock, logger: createLogger('silent') })
after(async () => {
  await keyUse[Symbol.asyncDispose]()
  await annals[Symbol.asyncDispose]()
})

const OPEN: Gate = { permission: null }

/** Gates by scope, allowlist and plan. */
const OPEN_GATES: readonly Gate[] = [undefined, ...KEY_SCOPES].flatMap((scope) =>
  [undefined, true as const].flatMap((allowlist) =>
    [undefined, ...PLANS].map((plan) => ({
      permission: null,
      ...(scope && { scope }),
      ...(allowlist && { allowlist }),
      ...(plan && { plan }),
    })),
  ),
)

const CLOSED: Gate = { permission: 'webhooks', allowlist: true, plan: 'PRO' }
const GATES = [...OPEN_GATES, ...KEY_SCOPES.map((scope) => ({ ...CLOSED, scope }))]

/** One small route per gate, which returns who passed. */
function gateServer(options: { trustedProxies?: string[]; hasRateLimits?: boolean } = {}) {
  const guard = new KeyGuard({
    keyCache: new KeyCache((kid) => findKeyByKid(db, kid), clock, TIMEOUT_FACTOR),
    keyUse,
    clock,
    monotonic: clock,
    addresses: new ClientAddresses(compileRanges(options.trustedProxies ?? [])),
    hasRateLimits: options.hasRateLimits ?? false,
    timeoutFactor: TIMEOUT_FACTOR,
  })
  const server = fastify()
  server.setErrorHandler(createErrorHandler())
  for (const [index, gate] of GATES.entries()) {
    server.get(
      `/${index}`,
      { onRequest: guard.requireKey(gate) },
      ({ principal, clientAddress }) => {
        const { companyId, workspaceId, scope, plan } = principal
        return { companyId, workspaceId, scope, plan, clientAddress }
      },
    )
  }
  return server
}

type GateCall = { key: string; from?: string; forwardedFor?: string }

async function callGate(
  server: FastifyInstance,
  gate: Gate,
  { key, from, forwardedFor }: GateCall,
) {
  const response = await server.inject({
    url: `/${GATES.findIndex((known) => JSON.stringify(known) === JSON.stringify(gate))}`,
    remoteAddress: from ?? '127.0.0.1',
    headers: {
      authorization: `Bearer ${key}`,
      ...(forwardedFor !== undefined && { 'x-forwarded-for': forwardedFor }),
    },
  })
  return { status: response.statusCode, json: response.json() }
}

const LISTS = { holding: ['127.0.0.1/32'], foreign: ['192.0.2.0/24'], empty: [] } as const
const STATES = ['ACTIVE', 'ROTATING', 'EXPIRED', 'REVOKED', 'REPLACED'] as const

type Condition = {
  scope: KeyScope
  plan: Plan
  list: keyof typeof LISTS
  isForAllCalls: boolean
  state: (typeof STATES)[number]
}

/** An independent copy of the documented order of checks. */
function expectedCode(key: Condition, gate: Gate): string | null {
  if (key.state === 'REVOKED' || key.state === 'REPLACED') return 'invalid_api_key'
  if (key.state === 'EXPIRED') return 'expired_api_key'
  if (gate.scope !== undefined && gate.scope !== key.scope) return 'insufficient_scope'
  const isRequired = gate.allowlist === true || key.isForAllCalls
  if (isRequired && key.list !== 'holding') return 'ip_not_allowed'
  const ladder = { FREE: 0, STARTER: 1, PRO: 2, ENTERPRISE: 3 }
  if (gate.plan !== undefined && ladder[key.plan] < ladder[gate.plan]) return 'plan_required'
  return null
}

type Tenant = Omit<Condition, 'scope' | 'state'> & { created: CreatedCompany }
const tenants: Tenant[] = []

before(async () => {
  for (const plan of PLANS) {
    for (const list of ['holding', 'foreign', 'empty'] as const) {
      for (const isForAllCalls of [false, true]) {
        const created = await annals.createCompany({ plan, allowlist: LISTS[list] })
        await setForAllCalls(created, isForAllCalls)
        tenants.push({ plan, list, isForAllCalls, created })
      }
    }
  }
})

async function setForAllCalls({ company }: CreatedCompany, isForAllCalls: boolean) {
  await db
    .updateTable('company')
    .set({ allowlist_for_all_calls: isForAllCalls })
    .where('id', '=', company.id)
    .execute()
}

async function setStateOfAllKeys(state: Condition['state']) {
  const past = new Date(clock() - 1)
  const future = new Date(clock() + 3_600_000)
  await db
    .updateTable('api_key')
    .set({
      revoked_at: state === 'REVOKED' ? past : null,
      expires_at: state === 'EXPIRED' ? past : future,
      grace_until: state === 'REPLACED' ? past : state === 'ROTATING' ? future : null,
    })
    .execute()
  advance(10_000) // Every cache entry for a key has expired.
}

for (const state of STATES) {
  test(`checks a key that is ${state} in the order of the contract`, async () => {
    await setStateOfAllKeys(state)
    await using server = gateServer()
    const seen = new Set<string>()
    for (const { created, ...tenant } of tenants) {
      for (const scope of KEY_SCOPES) {
        const key = scope === 'COMPANY' ? created.companyKey : created.workspaceKey
        for (const gate of OPEN_GATES) {
          const expected = expectedCode({ ...tenant, scope, state }, gate)
          const { json } = await callGate(server, gate, { key })
          const about = JSON.stringify({ ...tenant, scope, state, gate })
          assert.equal(json.code ?? null, expected, about)
          seen.add(expected ?? 'let in')
          if (expected !== null) continue
          assert.equal(json.companyId, created.company.id, about)
          assert.equal(json.workspaceId, scope === 'COMPANY' ? null : created.workspace.id, about)
        }
      }
    }
    const isAlive = state === 'ACTIVE' || state === 'ROTATING'
    assert.equal(seen.size, isAlive ? 4 : 1, `the matrix covers each response: ${[...seen].join()}`)
    await setStateOfAllKeys('ACTIVE')
  })
}

test('checks the rate limit after the key and before everything else', async () => {
  const created = await annals.createCompany({ plan: 'FREE', allowlist: [] })
  await using server = gateServer({ hasRateLimits: true })
  const closed: Gate = { ...OPEN, scope: 'WORKSPACE', allowlist: true, plan: 'PRO' }
  const key = created.companyKey
  await db
    .updateTable('api_key')
    .set({ expires_at: new Date(clock() + 5) })
    .where('kid', '=', kidOf(key))
    .execute()
  for (let call = 0; call < 50; call++) {
    assert.equal((await callGate(server, closed, { key })).json.code, 'insufficient_scope')
  }
  assert.equal((await callGate(server, closed, { key })).json.code, 'rate_limited')
  advance(5)
  const expired = await callGate(server, closed, { key })
  assert.equal(expired.json.code, 'expired_api_key', 'though the bucket is still empty')
})

test('checks the permission after the scope and before the allowlist', async () => {
  const { companyKey: key, company } = await annals.createCompany({ plan: 'FREE', allowlist: [] })
  await using server = gateServer()
  const refusal = async (required: Gate) => (await callGate(server, required, { key })).json
  const limitTo = async (permissions: string[] | null) => {
    await db.updateTable('api_key').set({ permissions }).where('kid', '=', kidOf(key)).execute()
    advance(2_000)
  }
  await limitTo(['events:read'])
  const byScope = await refusal({ ...CLOSED, scope: 'WORKSPACE' })
  assert.match(byScope.error, /^This key has company scope\./)
  const byPermission = await refusal({ ...CLOSED, scope: 'COMPANY' })
  assert.equal(byPermission.code, 'insufficient_scope')
  assert.match(byPermission.error, /^This key doesn't have the permission webhooks\./)
  await limitTo(null)
  assert.equal((await refusal({ ...CLOSED, scope: 'COMPANY' })).code, 'ip_not_allowed')
  assert.equal((await refusal(OPEN)).companyId, company.id)
})

test('determines the caller’s address only through trusted proxies', async () => {
  const { companyKey: key } = await annals.createCompany({
    allowlist: ['203.0.113.0/24', '2001:db8::/32'],
  })
  const gate: Gate = { ...OPEN, allowlist: true }
  await using direct = gateServer()
  await using proxied = gateServer({ trustedProxies: ['10.0.0.0/8'] })
  const cases: readonly [FastifyInstance, Omit<GateCall, 'key'>, number][] = [
    [direct, { from: '203.0.113.5' }, 200],
    [direct, { from: '::ffff:203.0.113.5' }, 200],
    [direct, { from: '2001:db8::5' }, 200],
    [direct, { from: '203.0.114.5' }, 403],
    [direct, { from: '10.0.0.1', forwardedFor: '203.0.113.5' }, 403],
    [direct, { from: '203.0.113.5', forwardedFor: '198.51.100.1' }, 200],
    [proxied, { from: '10.0.0.1', forwardedFor: '203.0.113.5' }, 200],
    [proxied, { from: '10.0.0.1', forwardedFor: '203.0.113.5, 10.9.9.9' }, 200],
    [proxied, { from: '10.0.0.1', forwardedFor: '203.0.113.5, 198.51.100.1' }, 403],
    [proxied, { from: '198.51.100.1', forwardedFor: '203.0.113.5' }, 403],
    [proxied, { from: '10.0.0.1', forwardedFor: '203.0.113.5, nonsense' }, 403],
    [proxied, { from: '10.0.0.1' }, 403],
  ]
  for (const [server, from, status] of cases) {
    const response = await callGate(server, gate, { key, ...from })
    assert.equal(response.status, status, JSON.stringify(from))
    if (status === 403) assert.equal(response.json.code, 'ip_not_allowed')
  }
})

test('a key never acts for another company, even with many concurrent calls', async () => {
  await using server = gateServer()
  const calls = Array.from({ length: 10 }, () =>
    tenants.filter(({ isForAllCalls }) => !isForAllCalls),
  )
  await Promise.all(
    calls.flat().map(async ({ created }) => {
      const { json } = await callGate(server, OPEN, { key: created.workspaceKey })
      assert.equal(json.companyId, created.company.id)
      assert.equal(json.workspaceId, created.workspace.id)
    }),
  )
})

test('a change of plan or allowlist takes effect within two seconds', async () => {
  const created = await annals.createCompany({ plan: 'FREE', allowlist: ['127.0.0.1'] })
  const key = created.companyKey
  await using server = gateServer()
  assert.equal(
    (await callGate(server, { ...OPEN, plan: 'PRO' }, { key })).json.code,
    'plan_required',
  )
  assert.equal((await callGate(server, { ...OPEN, allowlist: true }, { key })).status, 200)
  await db
    .updateTable('company')
    .set({ plan: 'PRO', allowlist: ['192.0.2.0/24'], allowlist_for_all_calls: true })
    .where('id', '=', created.company.id)
    .execute()
  advance(2_000)
  const response = await callGate(server, { ...OPEN, plan: 'PRO' }, { key })
  assert.equal(response.json.code, 'ip_not_allowed')
  const inside = await callGate(server, { ...OPEN, plan: 'PRO' }, { key, from: '192.0.2.7' })
  assert.deepEqual([inside.status, inside.json.plan], [200, 'PRO'])
})

const kidOf = (key: string) => parseKeyText(key)?.kid ?? ''
