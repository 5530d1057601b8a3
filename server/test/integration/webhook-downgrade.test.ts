import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { updatePlan } from '../../src/tenancy/company-store.ts'
import { signInAs } from '../harness/dashboard.ts'
import { query } from '../harness/engine.ts'
import { eventually } from '../harness/eventually.ts'
import { startTestApp } from '../harness/start-app.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhooks.ts'

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

test('no webhook is created or enabled in the dashboard after a downgrade', async () => {
  const tenant = await annals.createCompany()
  const { company, workspace, companyKey } = tenant
  const admin = await signInAs(annals, tenant, 'ADMIN')
  const id = await makeWebhook(annals, tenant, { url: URL })
  const disabled = await admin.call('POST', `/dashboard/webhooks/${id}/disable`)
  assert.equal(disabled.status, 200, disabled.text)
  const { db } = annals.app.database
  // All three requests see the old plan and meet the downgrade before it commits.
  const calls = await db.transaction().execute(async (tx) => {
    await updatePlan(tx, { companyId: company.id, plan: 'STARTER' })
    const running = Promise.all([
      annals.call('POST', `/v1/workspaces/${workspace.id}/webhooks`, {
        key: companyKey,
        body: { url: URL },
      }),
      admin.call('POST', '/dashboard/webhooks', { body: { workspaceId: workspace.id, url: URL } }),
      admin.call('POST', `/dashboard/webhooks/${id}/enable`),
    ])
    await waitForLocks(3)
    return { running }
  })
  for (const { status, json } of await calls.running) {
    assert.deepEqual([status, json.code], [403, 'plan_required'])
  }
  const rows = await query(
    annals.database.connection,
    `select id from webhook where company_id = '${company.id}' and status = 'ENABLED'`,
  )
  assert.equal(rows.length, 0)
})

test('a key whose cached plan is from before a downgrade creates no webhook', async () => {
  const { company, workspace, companyKey: key } = await annals.createCompany()
  const path = `/v1/workspaces/${workspace.id}/webhooks`
  assert.equal((await annals.call('GET', path, { key })).status, 200)
  await updatePlan(annals.app.database.db, { companyId: company.id, plan: 'STARTER' })
  const { status, json } = await annals.call('POST', path, { key, body: { url: URL } })
  assert.deepEqual([status, json.code], [403, 'plan_required'])
})
