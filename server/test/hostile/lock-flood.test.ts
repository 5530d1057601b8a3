import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { CompanyId } from '../../src/platform/id.ts'
import { lockCompany } from '../../src/tenancy/company-store.ts'
import { countLockWaits, withCompanyLocked } from '../harness/database/company-lock.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ env: { ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())

/** The others of a company wait without a slot. */
const LOCK_WAITS_PER_COMPANY_MAX = 1
const SLOTS = 10
/** Together, their requests would take all slots. */
const COMPANIES = 4
const ROUNDS = 4
const EVENT = { category: 'c', action: 'a' }

/** Every kind of request that needs the company's lock. */
async function createWriters(): Promise<{
  companyId: CompanyId
  write: () => Promise<TestResponse>[]
}> {
  const tenant = await annals.createCompany()
  const admin = await signInAs(annals, tenant, 'ADMIN')
  const viewer = await signInAs(annals, tenant, 'VIEWER', [tenant.workspace.id])
  const view = { name: 'View', workspaceId: null, visibility: 'PRIVATE', query: {} }
  const webhooks = `/v1/workspaces/${tenant.workspace.id}/webhooks`
  const { companyKey: key } = tenant
  const write = () => [
    admin.call('PATCH', '/dashboard/company', { body: { name: 'Slow' } }),
    viewer.call('POST', '/dashboard/explorer/views', { body: view }),
    annals.call('POST', '/v1/exports', { key, body: { source: 'HOT', format: 'CSV' } }),
    annals.call('POST', webhooks, { key, body: { url: 'https://example.com/hook' } }),
  ]
  return { companyId: tenant.company.id, write }
}

test('companies whose requests wait for locks leave connections for every other company', async () => {
  const writers = await Promise.all(Array.from({ length: COMPANIES }, createWriters))
  const waitsMax = COMPANIES * LOCK_WAITS_PER_COMPANY_MAX
  const other = await annals.createCompany()
  const member = await signInAs(annals, other, 'ADMIN')
  const { workspaceKey: key } = other
  let responses: Promise<TestResponse>[] = []
  const [first, ...others] = writers
  assert(first)
  await withCompanyLocked(annals, first.companyId, async (trx) => {
    for (const { companyId } of others) await lockCompany(trx, companyId)
    responses = Array.from({ length: ROUNDS }, () => writers.flatMap(({ write }) => write())).flat()
    await eventually(async () => assert((await countLockWaits(annals)) >= waitsMax))
    let waits = 0
    // More than one try, because a busy machine can take longer than a read may.
    await eventually(async () => {
      waits = Math.max(waits, await countLockWaits(annals))
      const served = await Promise.all([
        annals.call('GET', '/v1/events', { key }),
        annals.call('POST', '/v1/events', { key, body: EVENT }),
        member.call('PATCH', '/dashboard/company', { body: { name: 'Quick' } }),
        member.call('GET', '/dashboard/session'),
        annals.call('GET', '/ready'),
      ])
      assert.deepEqual(
        served.map(({ status }) => status),
        [200, 201, 200, 200, 200],
      )
    })
    assert(waits < SLOTS, `${waits} requests waited for locks at once`)
  })
  for (const { status, json, text } of await Promise.all(responses)) {
    // Too many webhooks, views or exports are refused like at any other time, and on a busy machine, a read
    // can take longer than it may.
    const isExpected = status < 300 || ['overloaded', 'unavailable', 'conflict'].includes(json.code)
    assert(isExpected, text)
  }
})

test('a request keeps its slot until its statement ends, even if the client disconnects', async () => {
  const tenant = await annals.createCompany()
  const { cookie } = await signInAs(annals, tenant, 'ADMIN')
  const gone = new AbortController()
  const rename = (name: string, signal?: AbortSignal) =>
    fetch(`${annals.url}/dashboard/company`, {
      method: 'PATCH',
      headers: { cookie, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
      ...(signal && { signal }),
    })
  let left: Promise<unknown>[] = []
  let stays: Promise<Response>[] = []
  await withCompanyLocked(annals, tenant.company.id, async () => {
    left = Array.from({ length: ROUNDS }, () => rename('Gone', gone.signal).catch(String))
    await eventually(async () =>
      assert.equal(await countLockWaits(annals), LOCK_WAITS_PER_COMPANY_MAX),
    )
    gone.abort()
    await Promise.all(left)
    stays = [rename('Stays')]
    // Another company's request passes through the node after it.
    const other = await annals.createCompany()
    assert.equal((await annals.call('GET', '/v1/events', { key: other.workspaceKey })).status, 200)
    await eventually(async () =>
      assert.equal(await countLockWaits(annals), LOCK_WAITS_PER_COMPANY_MAX),
    )
  })
  for (const { status } of await Promise.all(stays)) assert.equal(status, 200)
})
