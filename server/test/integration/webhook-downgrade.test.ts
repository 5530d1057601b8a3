import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { updatePlan } from '../../src/tenancy/company-store.ts'
import { runCommandInHost } from '../harness/app/command-host.ts'
import { readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { noticesOf } from '../harness/dashboard/notices.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const annals = await startTestApp({ env: ANY_DESTINATION, role: 'api' })
after(() => annals[Symbol.asyncDispose]())

const URL = 'http://127.0.0.1:9/'

async function waitForLocks(count: number): Promise<void> {
  await eventually(async () => {
    const rows = await query(
      annals.database.connection,
      `select 1 from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`,
    )
    assert.equal(rows.length, count)
  })
}

async function setPlan(companyId: string, plan: string): Promise<void> {
  const { code, stderr } = await runCommandInHost(
    ['company', 'set-plan', '--company', companyId, '--plan', plan],
    {
      ANNALS_DATABASE_URL: annals.database.url,
      ANNALS_SECRET_KEY: Buffer.alloc(32).toString('base64'),
    },
  )
  assert.equal(code, 0, stderr)
}

test('no webhook is created after a downgrade', async () => {
  const tenant = await annals.createCompany()
  const { company, workspace, companyKey } = tenant
  const admin = await signInAs(annals, tenant, 'ADMIN')
  const { db } = annals.app.database
  const path = `/v1/workspaces/${workspace.id}/webhooks`
  const body = { workspaceId: workspace.id, url: URL }
  for (const create of [
    () => annals.call('POST', path, { key: companyKey, body: { url: URL } }),
    () => admin.call('POST', '/dashboard/webhooks', { body }),
  ]) {
    await updatePlan(db, { companyId: company.id, plan: 'PRO' })
    // The request sees the old plan and meets the downgrade before it commits.
    const [call] = await db.transaction().execute(async (tx) => {
      await updatePlan(tx, { companyId: company.id, plan: 'STARTER' })
      const running = create()
      await waitForLocks(1)
      return [running]
    })
    const { status, json } = await call
    assert.deepEqual([status, json.code], [403, 'plan_required'])
  }
  const rows = await query(
    annals.database.connection,
    `select id from webhook where company_id = '${company.id}' and status = 'ENABLED'`,
  )
  assert.equal(rows.length, 0)
})

test('an existing webhook can be enabled on any plan, with a key and in the dashboard', async () => {
  const tenant = await annals.createCompany()
  const { company, companyKey: key } = tenant
  const admin = await signInAs(annals, tenant, 'ADMIN')
  const id = await makeWebhook(annals, tenant, { url: URL })
  await updatePlan(annals.app.database.db, { companyId: company.id, plan: 'FREE' })
  const member = (action: string) => admin.call('POST', `/dashboard/webhooks/${id}/${action}`)
  const program = (action: string) => annals.call('POST', `/v1/webhooks/${id}/${action}`, { key })
  for (const call of [member, program]) {
    assert.equal((await call('disable')).status, 200)
    const { status, json } = await call('enable')
    assert.deepEqual([status, json], [200, { id, status: 'ENABLED' }])
  }
})

test('the audit log has an entry of the operator for a new plan and for each webhook it disables', async () => {
  const tenant = await annals.createCompany()
  const { company } = tenant
  const ids = [
    await makeWebhook(annals, tenant, { url: URL }),
    await makeWebhook(annals, tenant, { url: URL }),
  ]
  // The plan is set to FREE twice, but changes once.
  for (const plan of ['STARTER', 'FREE', 'FREE']) await setPlan(company.id, plan)
  const entries = await readAudit(annals, tenant)
  const actor = { id: 'operator', role: 'operator' }
  const address = 'command line'
  for (const entry of entries) assert.deepEqual(entry.actor, actor)
  const planEntryOf = (before: string, after: string) => ({
    action: 'PLAN_CHANGED',
    actor,
    resource: { type: 'company', id: company.id },
    metadata: { before: { plan: before }, after: { plan: after }, address },
  })
  const webhookEntryOf = (id: string) => ({
    action: 'WEBHOOK_DISABLED',
    actor,
    resource: { type: 'webhook', id },
    metadata: { plan: 'STARTER', url: URL, address },
  })
  const byId = (a: { resource: { id: string } }, b: typeof a) =>
    a.resource.id < b.resource.id ? -1 : 1
  assert.deepEqual(entries[0], planEntryOf(company.plan, 'STARTER'))
  assert.deepEqual(entries.slice(1, 3).toSorted(byId), ids.map(webhookEntryOf).toSorted(byId))
  assert.deepEqual(entries.slice(3), [planEntryOf('STARTER', 'FREE')])
  const admin = await signInAs(annals, tenant, 'ADMIN')
  const { json } = await admin.call('GET', `/dashboard/webhooks/${ids[0]}`)
  const reason = "Disabled by the change to the STARTER plan, which doesn't include webhooks."
  assert.deepEqual([json.status, json.disabledReason], ['DISABLED', reason])
  const notices = await noticesOf(admin)
  assert.deepEqual(
    notices.map(({ kind, message }) => `${kind} ${message}`),
    [`WEBHOOK_DISABLED All webhooks were disabled. ${reason}`],
  )
})

test('a webhook that was enabled on a plan without webhooks stays enabled on another one', async () => {
  const tenant = await annals.createCompany()
  const { id: companyId } = tenant.company
  const id = await makeWebhook(annals, tenant, { url: URL })
  await updatePlan(annals.app.database.db, { companyId, plan: 'STARTER' })
  for (const plan of ['STARTER', 'FREE', 'STARTER']) await setPlan(companyId, plan)
  const { json } = await annals.call('GET', `/v1/webhooks/${id}`, { key: tenant.companyKey })
  assert.equal(json.status, 'ENABLED')
})

test('a key whose cached plan is from before a downgrade creates no webhook', async () => {
  const { company, workspace, companyKey: key } = await annals.createCompany()
  const path = `/v1/workspaces/${workspace.id}/webhooks`
  assert.equal((await annals.call('GET', path, { key })).status, 200)
  await updatePlan(annals.app.database.db, { companyId: company.id, plan: 'STARTER' })
  const { status, json } = await annals.call('POST', path, { key, body: { url: URL } })
  assert.deepEqual([status, json.code], [403, 'plan_required'])
})
