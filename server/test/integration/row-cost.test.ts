import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { verifyChain } from '../../src/outlet/verify/verify-ledger.ts'
import { requestShare } from '../../src/platform/scheduling/time-slice.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { signEvents } from '../harness/proof/proof.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())

async function createWithEvents(count: number) {
  const tenant = await annals.createCompany()
  const body = { events: Array.from({ length: count }, () => ({ category: 'c', action: 'a' })) }
  const { workspaceKey: key } = tenant
  assert.equal((await annals.call('POST', '/v1/events/batch', { key, body })).status, 200)
  return tenant
}

/** How much more of its share the company has used after ten reads. */
async function costOf(companyId: string, read: () => Promise<TestResponse>): Promise<number> {
  const usedBefore = requestShare.usedMs(companyId)
  const responses = await Promise.all(Array.from({ length: 10 }, read))
  for (const { status } of responses) assert.equal(status, 200)
  return requestShare.usedMs(companyId) - usedBefore
}

test('a page of events in the API counts as used by its company, by its size', async () => {
  const few = await createWithEvents(1)
  const many = await createWithEvents(200)
  const read = (key: string) => () => annals.call('GET', '/v1/events?limit=200', { key })
  const costOfFew = await costOf(few.company.id, read(few.workspaceKey))
  const costOfMany = await costOf(many.company.id, read(many.workspaceKey))
  assert(costOfFew > 0, `${costOfFew} ms`)
  assert(costOfMany > 2 * costOfFew, `${costOfMany} ms is not twice ${costOfFew} ms`)
})

test('a page of events in the dashboard counts as used by its company', async () => {
  const tenant = await createWithEvents(200)
  const { call } = await signInAs(annals, tenant, 'OWNER')
  const cost = await costOf(tenant.company.id, () => call('GET', '/dashboard/events?limit=200'))
  assert(cost > 0, `${cost} ms`)
})

test('an entry bundle counts toward the CPU time of its company', async () => {
  const { company, workspace, workspaceKey: key } = await createWithEvents(256)
  await signEvents(annals, workspace.id)
  const path = `/v1/workspaces/${workspace.id}/tlog/tile/entries/000`
  const cost = await costOf(company.id, () => annals.call('GET', path, { key }))
  assert(cost > 20, `${cost} ms`)
})

test('the rows that a verification reads count as used by its owner', async () => {
  const { workspace } = await createWithEvents(200)
  const owner = 'verify a company'
  const { database, archive } = annals.app
  const verdict = await verifyChain(database, archive, workspace.id, { owner })
  assert(verdict.ok)
  assert(requestShare.usedMs(owner) > 0.5, `${requestShare.usedMs(owner)} ms`)
})
