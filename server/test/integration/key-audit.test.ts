import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { query } from '../harness/database/engine.ts'
import { assertChainsHold } from '../harness/event/ledger.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION } from '../harness/webhook/webhooks.ts'

const annals = await startTestApp({ role: 'api', env: ANY_DESTINATION })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database

type Tenant = Awaited<ReturnType<typeof annals.createCompany>>

/** The company's own audit log, oldest first, read with its key. */
async function readAudit({ company, companyKey: key }: Tenant) {
  const [row] = await query(
    connection,
    `select id from workspace where company_id = '${company.id}' and kind = 'SYSTEM'`,
  )
  const { json } = await annals.call('GET', `/v1/events?workspaceId=${String(row?.['id'])}`, {
    key,
  })
  return json.data.toReversed()
}

const actionsOf = (entries: { action: string }[]) => entries.map(({ action }) => action)

test('every change that a key makes to a webhook is in the audit log, with the key and its address', async () => {
  const tenant = await annals.createCompany()
  const { companyKey: key, workspace } = tenant
  const call = async (method: string, path: string, body?: object) => {
    const response = await annals.call(method, path, { key, ...(body && { body }) })
    assert(response.status < 300, response.text)
    return response
  }
  const created = await call('POST', `/v1/workspaces/${workspace.id}/webhooks`, {
    url: 'http://127.0.0.1:9/first',
  })
  const hook = `/v1/webhooks/${created.json.id}`
  await call('PATCH', hook, { url: 'http://127.0.0.1:9/second' })
  await call('POST', `${hook}/rotate-secret`, { overlapSeconds: 60 })
  await call('POST', `${hook}/finish-rotation`)
  await call('POST', `${hook}/test`)
  await call('POST', `${hook}/disable`)
  await call('POST', `${hook}/enable`)
  await call('DELETE', hook)

  const entries = await readAudit(tenant)
  assert.deepEqual(actionsOf(entries), [
    'WEBHOOK_CREATED',
    'WEBHOOK_CHANGED',
    'WEBHOOK_SECRET_ROTATED',
    'WEBHOOK_SECRET_ROTATED',
    'WEBHOOK_TESTED',
    'WEBHOOK_DISABLED',
    'WEBHOOK_ENABLED',
    'WEBHOOK_DELETED',
  ])
  const [row] = await query(
    connection,
    `select id, name from api_key where company_id = '${tenant.company.id}' and scope = 'COMPANY'`,
  )
  for (const { category, actor, metadata, resource } of entries) {
    assert.deepEqual([category, actor], ['api', { id: row?.['id'], role: 'key' }])
    assert.deepEqual([metadata.keyName, metadata.address], [row?.['name'], '127.0.0.1'])
    assert.deepEqual(resource, { type: 'webhook', id: created.json.id })
  }
  assert.equal(entries[0].traceId, created.headers.get('x-trace-id'))
  assert(!JSON.stringify(entries).includes(created.json.secret))
  await assertChainsHold(annals)
})

test('exports that a key requests, downloads, reruns or cancels are in the audit log', async () => {
  const tenant = await annals.createCompany()
  const { workspaceKey: key } = tenant
  await annals.call('POST', '/v1/events', { key, body: { category: 'c', action: 'a' } })
  const body = { source: 'HOT', format: 'JSONL' }
  const job = await annals.call('POST', '/v1/exports', { key, body })
  const file = await annals.call('GET', `/v1/exports/${job.json.jobId}/download`, { key })
  assert.equal(file.status, 200)
  const again = await annals.call('POST', `/v1/exports/${job.json.jobId}/rerun`, { key })
  await annals.call('POST', `/v1/exports/${again.json.jobId}/cancel`, { key })

  const entries = await readAudit(tenant)
  assert.deepEqual(actionsOf(entries), [
    'EXPORT_REQUESTED',
    'EXPORT_DOWNLOAD_STARTED',
    'EXPORT_DOWNLOADED',
    'EXPORT_RERUN',
    'EXPORT_CANCELED',
  ])
  assert.equal(entries[2].metadata.rows, 1)
  assert.deepEqual(entries[3].resource, { type: 'export_job', id: again.json.jobId })
})

test('a change that is refused leaves no audit entry', async () => {
  const tenant = await annals.createCompany()
  const { companyKey: key } = tenant
  const unknown = '/v1/webhooks/01a1e63f-2030-758f-91f7-31757d1a0a10'
  assert.equal((await annals.call('DELETE', unknown, { key })).status, 404)
  assert.equal((await annals.call('POST', `${unknown}/enable`, { key })).status, 404)
  assert.deepEqual(await readAudit(tenant), [])
})
