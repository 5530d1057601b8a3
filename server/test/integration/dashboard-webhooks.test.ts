import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import { asOwner, withoutTable } from '../harness/dashboard/console.ts'
import { type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { copyRows } from '../harness/database/copy-rows.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION } from '../harness/webhook/webhooks.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const annals = stack.use(await startTestApp({ env: ANY_DESTINATION }))

async function createTenant() {
  const company = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const admin = await signInAs(annals, company, 'ADMIN')
  const receiver = stack.use(await startReceiver())
  const { status, json, text } = await admin.call('POST', '/dashboard/webhooks', {
    body: { workspaceId: company.workspace.id, url: receiver.url, secretLabel: 'first' },
  })
  assert.equal(status, 201, text)
  return { company, admin, receiver, webhook: json, path: `/dashboard/webhooks/${json.id}` }
}

async function send(key: string, action: string): Promise<string> {
  const { json } = await annals.call('POST', '/v1/events', { key, body: { category: 'c', action } })
  return json.id
}

async function deliveriesOf(member: Member, path: string, count: number) {
  return await eventually(async () => {
    const { json } = await member.call('GET', `${path}/deliveries`)
    assert.equal(json.data.length, count)
    for (const { status } of json.data) assert.equal(status, 'SUCCEEDED')
    return json.data
  })
}

test('a webhook created in the dashboard delivers, and shows the exact bytes sent', async () => {
  const { company, admin, receiver, webhook, path } = await createTenant()
  const eventId = await send(company.workspaceKey, 'user.login')
  const [delivery] = await deliveriesOf(admin, path, 1)
  assert.equal(delivery.eventId, eventId)
  const { json: detail } = await admin.call('GET', `${path}/deliveries/${delivery.id}`)
  const [request] = receiver.requests
  assert(request)
  assert.equal(detail.requestBody, request.body.toString())
  assert.equal(detail.attempts[0].responseStatus, 200)
  const byEvent = await admin.call(
    'GET',
    `/dashboard/deliveries?workspaceId=${company.workspace.id}&eventSeq=1`,
  )
  assert.equal(byEvent.json.deliveries[0].id, delivery.id)
  const { json: health } = await admin.call('GET', `${path}/health`)
  assert.equal(health.hours.length, 24)
  assert.equal(health.successRate, 1)
  const counts = { succeeded: 1, failed: 0, retrying: 0 }
  const { state, lastHour, lastDay, overdueSince } = health
  assert.deepEqual([state, lastHour, lastDay, overdueSince], ['HEALTHY', counts, counts, null])
  assert.equal(health.hours.at(-1).succeeded + health.hours.at(-2).succeeded, 1)
  const check = (signature: string | undefined, body = detail.requestBody) =>
    admin.call('POST', `${path}/check-signature`, { body: { body, signature } })
  const sent = request.headers['x-service-signature']
  assert.equal((await check(sent)).json.finding, 'valid')
  assert.equal((await check(sent, `${detail.requestBody}\n`)).json.finding, 'newline')
  assert.equal((await check(`v1=${'0'.repeat(64)}`)).json.finding, 'no_match')
  assert(!JSON.stringify(await readAudit(annals, company)).includes(webhook.secret))
})

test('the health of a webhook counts retries as not delivered, and shows the oldest overdue one', async () => {
  const { company, admin, webhook, path } = await createTenant()
  for (const action of ['a.first', 'a.second']) await send(company.workspaceKey, action)
  const [last] = await deliveriesOf(admin, path, 2)
  const dueAt = '2026-01-01T00:00:00.000Z'
  await asOwner(annals, async (db) => {
    // Annals pauses after failures, so nothing is sent meanwhile.
    await sql`update webhook set resting_until = now() + interval '1 day', open_count = 1
               where id = ${webhook.id}`.execute(db)
    await sql`update webhook_delivery
                 set status = 'RETRY_SCHEDULED', error_class = 'http', due_at = ${dueAt}
               where id = ${last.id}`.execute(db)
  })
  const { json: health } = await admin.call('GET', `${path}/health`)
  const counts = { succeeded: 1, failed: 0, retrying: 1 }
  const { state, lastHour, lastDay, overdueSince, open } = health
  assert.deepEqual([state, overdueSince, open], ['FAILING', dueAt, 1])
  assert.deepEqual([lastHour, lastDay], [counts, counts])
})

test('every change of a webhook is in the audit log, without secrets', async () => {
  const { company, admin, webhook, path } = await createTenant()
  const secrets: string[] = [webhook.secret]
  const url = webhook.url.replace(/\/?$/, '/changed')
  assert.equal((await admin.call('PATCH', path, { body: { url } })).json.url, url)
  assert.equal((await admin.call('POST', `${path}/disable`)).json.status, 'DISABLED')
  const refused = await admin.call('POST', `${path}/test`)
  assert.equal(refused.status, 409)
  assert.equal((await admin.call('POST', `${path}/enable`)).json.status, 'ENABLED')
  const rotated = await admin.call('POST', `${path}/rotate-secret`, { body: {} })
  secrets.push(rotated.json.secret)
  assert.equal((await admin.call('POST', `${path}/rotate-secret`)).status, 409)
  assert.equal((await admin.call('POST', `${path}/finish-rotation`)).json.nextSecretAt, null)
  assert.equal((await admin.call('POST', `${path}/test`)).status, 202)
  const [delivery] = await deliveriesOf(admin, path, 1)
  const again = await admin.call('POST', `${path}/deliveries/${delivery.id}/redeliver`)
  assert.equal(again.status, 202)
  const window = {
    from: new Date(Date.now() - 60_000).toISOString(),
    to: new Date(Date.now() + 60_000).toISOString(),
  }
  const { json: result } = await admin.call('POST', `${path}/redeliver`, { body: window })
  assert.equal(result.isComplete, true)
  assert.equal((await admin.call('DELETE', path)).status, 204)
  assert.equal((await admin.call('GET', path)).status, 404)
  const entries = await readAudit(annals, company)
  assert.deepEqual(
    entries.map(({ action }) => action),
    [
      'WEBHOOK_CREATED',
      'WEBHOOK_CHANGED',
      'WEBHOOK_DISABLED',
      'WEBHOOK_ENABLED',
      'WEBHOOK_SECRET_ROTATED',
      'WEBHOOK_SECRET_ROTATED',
      'WEBHOOK_TESTED',
      'WEBHOOK_REDELIVERED',
      'WEBHOOK_REDELIVERED',
      'WEBHOOK_DELETED',
    ],
  )
  for (const entry of entries) assert.equal(entry.actor.email, admin.email)
  for (const secret of secrets) assert(!JSON.stringify(entries).includes(secret))
})

test('a viewer can see the webhooks of their workspaces but not change them', async () => {
  const { company, admin, path } = await createTenant()
  const viewer = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  const { json } = await viewer.call('GET', '/dashboard/webhooks')
  assert.equal(json.webhooks.length, 1)
  assert(!JSON.stringify(json).includes('whsec_'))
  assert.equal((await viewer.call('GET', path)).status, 200)
  const changes: [string, string, object?][] = [
    ['PATCH', path, { url: 'https://example.com/' }],
    ['DELETE', path],
    ['POST', `${path}/enable`],
    ['POST', `${path}/disable`],
    ['POST', `${path}/rotate-secret`],
    ['POST', `${path}/test`],
    ['POST', `${path}/check-signature`, { body: '', signature: 'x' }],
  ]
  for (const [method, target, body] of changes) {
    const response = await viewer.call(method, target, body ? { body } : {})
    assert.equal(response.json.code, 'insufficient_role', `${method} ${target}`)
  }
  assert.equal((await admin.call('GET', path)).json.status, 'ENABLED')
})

test('lists all webhooks of a company, page by page, each once', async () => {
  const { company, admin, webhook } = await createTenant()
  const [, staging] = company.workspaces
  assert(staging)
  await copyRows(annals.database.connection, {
    table: 'webhook',
    changes: `jsonb_build_object('id', gen_random_uuid(), 'workspace_id', workspace.id)`,
    from: `webhook as t, generate_series(1, 110), workspace
      where t.id = '${webhook.id}' and workspace.id in ('${company.workspace.id}', '${staging.id}')`,
  })
  const ids: string[] = []
  let cursor: string | null = ''
  let pages = 0
  while (cursor !== null) {
    const { status, json, text } = await admin.call(
      'GET',
      `/dashboard/webhooks?${cursor && `cursor=${cursor}`}`,
    )
    assert.equal(status, 200, text)
    ids.push(...json.webhooks.map(({ id }: { id: string }) => id))
    pages += 1
    cursor = json.nextCursor
  }
  assert.deepEqual([ids.length, new Set(ids).size, pages], [221, 221, 3])
  const one = await admin.call('GET', `/dashboard/webhooks?workspaceId=${staging.id}`)
  assert.equal(one.json.webhooks.length, 100)
  const other = await signInAs(annals, company, 'ADMIN')
  const onward = `/dashboard/webhooks?workspaceId=${staging.id}&cursor=${one.json.nextCursor}`
  assert.equal((await admin.call('GET', onward)).json.webhooks.length, 10)
  assert.equal((await other.call('GET', onward)).json.code, 'invalid_cursor')
})

test('webhooks of another company or another workspace get a 404', async () => {
  const { company, path } = await createTenant()
  const stranger = await signInAs(annals, await annals.createCompany(), 'OWNER')
  const staging = company.workspaces[1]
  assert(staging)
  const other = await signInAs(annals, company, 'VIEWER', [staging.id])
  const unknown = '/dashboard/webhooks/00000000-0000-7000-8000-000000000000'
  for (const member of [stranger, other]) {
    const expected = (await member.call('GET', unknown)).json.error
    for (const target of [path, `${path}/deliveries`, `${path}/health`, '/dashboard/webhooks/x']) {
      const { status, json } = await member.call('GET', target)
      assert.equal(status, 404, target)
      assert.equal(json.error, expected)
    }
    const list = await member.call('GET', `/dashboard/webhooks?workspaceId=${company.workspace.id}`)
    assert.equal(list.status, 404)
  }
  const owner = await signInAs(annals, company, 'OWNER')
  assert.equal((await stranger.call('DELETE', path)).status, 404)
  assert.equal((await owner.call('GET', path)).status, 200)
})

test('a company whose plan has no webhooks gets an error', async () => {
  const company = await annals.createCompany({ plan: 'STARTER' })
  const admin = await signInAs(annals, company, 'ADMIN')
  const body = { workspaceId: company.workspace.id, url: 'https://example.com/hook' }
  const { status, json } = await admin.call('POST', '/dashboard/webhooks', { body })
  assert.equal(status, 403)
  assert.equal(json.code, 'plan_required')
})

test('rejects a change requested by another site’s page', async () => {
  const { admin, path } = await createTenant()
  const foreign: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': '', origin: 'https://evil.example' },
  ]
  for (const headers of foreign) {
    const { status, json } = await admin.call('POST', `${path}/disable`, { headers })
    assert.equal(status, 403)
    assert.equal(json.code, 'cross_site')
  }
  assert.equal((await admin.call('GET', path)).json.status, 'ENABLED')
})

test('a deeply nested body is validated like any other', async () => {
  const { admin, path } = await createTenant()
  for (const depth of [65, 5_000, 90_000]) {
    const body = { body: '['.repeat(depth) + ']'.repeat(depth), signature: `v1=${'0'.repeat(64)}` }
    const { status, json } = await admin.call('POST', `${path}/check-signature`, { body })
    assert.deepEqual([status, json.finding], [200, 'no_match'], String(depth))
  }
})

test('finishing a rotation that does not exist changes nothing and is not recorded', async () => {
  const { company, admin, path } = await createTenant()
  assert.equal((await admin.call('POST', `${path}/finish-rotation`)).status, 200)
  await admin.call('POST', `${path}/rotate-secret`)
  for (const _ of [1, 2]) await admin.call('POST', `${path}/finish-rotation`)
  const actions = (await readAudit(annals, company)).map(({ action }) => action)
  assert.deepEqual(actions, ['WEBHOOK_CREATED', 'WEBHOOK_SECRET_ROTATED', 'WEBHOOK_SECRET_ROTATED'])
})

test('a cursor of deliveries is valid only for its member', async () => {
  const { company, admin, path } = await createTenant()
  for (const _ of [1, 2, 3]) await admin.call('POST', `${path}/test`)
  const { json } = await admin.call('GET', `${path}/deliveries?limit=1`)
  const onward = `${path}/deliveries?limit=1&cursor=${json.nextCursor}`
  assert.equal((await admin.call('GET', onward)).json.data[0].sequence, 2)
  const viewer = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  assert.equal((await viewer.call('GET', onward)).json.code, 'invalid_cursor')
})

test('the list is empty and says why if the table of deliveries is missing', async () => {
  const { admin, path } = await createTenant()
  await withoutTable(annals, 'webhook_delivery', async () => {
    const { status, json, headers } = await admin.call('GET', `${path}/deliveries`)
    assert.deepEqual([status, json], [200, { data: [], nextCursor: null }])
    assert.equal(headers.get('x-service-schema-drift'), 'webhook_delivery')
  })
})
