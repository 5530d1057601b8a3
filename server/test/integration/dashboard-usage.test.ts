import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { advanceRollup } from '../../src/ledger/rollup/rollup.ts'
import { archiveAll } from '../harness/archive/archive.ts'
import { signInAs } from '../harness/dashboard/dashboard.ts'
import { startTestApp } from '../harness/app/start-app.ts'

const annals = await startTestApp()
after(() => annals[Symbol.asyncDispose]())

test('usage includes every event of a day in the member’s workspaces, counted or not', async () => {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const [production, staging] = company.workspaces
  assert(production && staging)
  const send = async (key: string, count: number) => {
    const event = { category: 'billing', action: 'paid', metadata: { note: 'ü' } }
    await annals.call('POST', '/v1/events/batch', {
      key,
      body: { events: Array.from({ length: count }, () => event) },
    })
  }
  await send(production.workspaceKey, 3)
  await advanceRollup(annals.app.database.db, production.id, { runMax: 2 })
  await send(production.workspaceKey, 2)
  await send(staging.workspaceKey, 4)
  const analyst = await signInAs(annals, company, 'ANALYST', [production.id])
  const { json } = await analyst.call('GET', '/dashboard/usage?days=2')
  const eventBytes = 'billing'.length + 'paid'.length + Buffer.byteLength('{"note":"ü"}')
  const total = (name: 'events' | 'bytes') =>
    json.days.reduce((sum: number, day: Record<string, number>) => sum + (day[name] ?? 0), 0)
  assert.equal(total('events'), 5)
  assert.equal(total('bytes'), 5 * eventBytes)
  assert.equal(json.eventsLastMinute, 5)
  const owner = await signInAs(annals, company, 'OWNER')
  const { json: all } = await owner.call('GET', '/dashboard/usage')
  assert.equal(all.days.length, 2)
  const foreign = await analyst.call('GET', `/dashboard/usage?workspaceId=${staging.id}`)
  assert.equal(foreign.status, 404)
})

test('rejects an invalid number of days', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  for (const days of ['0', '401', '1.5', 'x']) {
    const { status, json } = await owner.call('GET', `/dashboard/usage?days=${days}`)
    assert.equal(status, 400, days)
    assert.equal(json.code, 'invalid_request')
  }
})

test('an installation without rate limits reports none', async () => {
  await using unlimited = await startTestApp({ role: 'api', env: { ANNALS_RATE_LIMITS: 'off' } })
  const owner = await signInAs(unlimited, await unlimited.createCompany(), 'OWNER')
  assert.equal((await owner.call('GET', '/dashboard/usage')).json.eventsPerSecondMax, null)
  const limited = await signInAs(annals, await annals.createCompany({ plan: 'PRO' }), 'OWNER')
  assert.equal((await limited.call('GET', '/dashboard/usage')).json.eventsPerSecondMax, 2_000)
})

test('archived events leave the explorer’s counts and stay in the usage', async () => {
  const company = await annals.createCompany()
  const owner = await signInAs(annals, company, 'OWNER')
  const events = Array.from({ length: 5 }, (_, nth) => ({ category: 'c', action: `a${nth % 2}` }))
  const batch = { key: company.workspaceKey, body: { events } }
  await annals.call('POST', '/v1/events/batch', batch)
  await advanceRollup(annals.app.database.db, company.workspace.id, { runMax: 3 })
  await archiveAll(annals)
  await annals.call('POST', '/v1/events/batch', batch)
  const { json: histogram } = await owner.call('GET', '/dashboard/events/metrics/histogram')
  const { json: page } = await owner.call('GET', '/dashboard/events?limit=50')
  assert.equal(page.data.length, 5)
  assert.equal(histogram.total, 5)
  const { json: usage } = await owner.call('GET', '/dashboard/usage')
  assert.equal(usage.days[0].events, 10)
})
