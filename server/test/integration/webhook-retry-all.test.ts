import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Role } from '../../src/tenancy/member/user-store.ts'
import { type Member, readAudit, signInAs } from '../harness/dashboard/dashboard.ts'
import { query } from '../harness/database/engine.ts'
import { startTestApp, type TestResponse } from '../harness/app/start-app.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'

// Without a dispatcher, which would send the deliveries.
const annals = await startTestApp({ role: 'api', env: { ANNALS_WEBHOOK_DESTINATIONS: 'any' } })
after(() => annals[Symbol.asyncDispose]())

/** A webhook with one delivery per event. The first events have been sent, the others are archived. */
async function createWebhook(statuses: readonly string[], { archivedCount = 0 } = {}) {
  const company = await annals.createCompany()
  const workspaceId = company.workspace.id
  const id = await makeWebhook(annals, company, { url: 'http://127.0.0.1:1/' })
  const { connection } = annals.database
  const hotCount = statuses.length - archivedCount
  for (let sent = 0; sent < hotCount; sent += 500) {
    const events = Array.from({ length: Math.min(500, hotCount - sent) }, () => ({
      category: 'billing',
      action: 'invoice.paid',
      actor: { email: 'ana@acme.example' },
    }))
    const body = { events }
    await annals.call('POST', '/v1/events/batch', { key: company.workspaceKey, body })
  }
  await query(
    connection,
    `insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_seq, event_id, status,
                                   attempt, due_at, response_status, error_class, created_at, updated_at)
     select '${workspaceId}', '${id}', gen_random_uuid(), n, n, gen_random_uuid(), status, 3,
            now() + interval '1 hour', case when n % 2 = 0 then 500 end,
            case when n % 2 = 0 then 'http' else 'timeout' end, now(), now() - interval '1 second'
       from unnest(array['${statuses.join("','")}']) with ordinality as s (status, n)`,
  )
  await query(
    connection,
    `update webhook set last_sequence = ${statuses.length},
            open_count = (select count(*) from webhook_delivery d
                           where d.webhook_id = '${id}' and status not in ('FAILED', 'SUCCEEDED'))
      where id = '${id}'`,
  )
  const countBy = async () => {
    const rows = await query(
      connection,
      `select status, count(*)::integer as count from webhook_delivery
        where webhook_id = '${id}' group by status`,
    )
    return Object.fromEntries(rows.map((row) => [row['status'], row['count']]))
  }
  const openCount = async () => {
    const [row] = await query(connection, `select open_count from webhook where id = '${id}'`)
    return Number(row?.['open_count'])
  }
  return { company, id, path: `/dashboard/webhooks/${id}`, countBy, openCount }
}

type Preview = TestResponse['json']

async function previewOf(member: Member, path: string): Promise<Preview> {
  const { status, json, text } = await member.call('GET', `${path}/retry`)
  assert.equal(status, 200, text)
  return json
}

/** Repeats the request until nothing is left, as the dashboard does. */
async function retry(
  member: Member,
  path: string,
  status: string,
  { throughSequence, previewedAt }: Preview,
) {
  const steps: { queued: number; archived: number }[] = []
  let afterSequence = 0
  for (;;) {
    const body = { status, throughSequence, previewedAt, afterSequence }
    const response = await member.call('POST', `${path}/retry`, { body })
    assert.equal(response.status, 202, response.text)
    const { queued, archived, continueAfter } = response.json
    steps.push({ queued, archived })
    assert(steps.length < 10)
    if (continueAfter === null) return steps
    afterSequence = continueAfter
  }
}

const repeat = (status: string, count: number) => Array.from({ length: count }, () => status)

test('retries failed deliveries in steps, and reports those whose events are archived', async () => {
  const statuses = [...repeat('FAILED', 1_500), 'SUCCEEDED', 'PENDING', ...repeat('FAILED', 20)]
  const webhook = await createWebhook(statuses, { archivedCount: 20 })
  const admin = await signInAs(annals, webhook.company, 'ADMIN')
  const preview = await previewOf(admin, webhook.path)
  assert.equal(preview.throughSequence, 1_522)
  assert.equal(preview.isCut, false)
  assert.deepEqual(preview.groups, [
    { status: 'FAILED', responseStatus: 500, errorClass: 'http', count: 760 },
    { status: 'FAILED', responseStatus: null, errorClass: 'timeout', count: 760 },
  ])
  assert.deepEqual(await retry(admin, webhook.path, 'FAILED', preview), [
    { queued: 1_000, archived: 0 },
    { queued: 500, archived: 20 },
  ])
  assert.deepEqual(await webhook.countBy(), { FAILED: 20, SUCCEEDED: 1, PENDING: 1_501 })
  assert.equal(await webhook.openCount(), 1_501)
  const entries = (await readAudit(annals, webhook.company)).filter(
    ({ action }) => action === 'WEBHOOK_REDELIVERED',
  )
  assert.deepEqual(
    entries.map(({ actor, resource, metadata }) => [
      actor.email,
      resource.id,
      metadata.status,
      metadata.count,
    ]),
    [
      [admin.email, webhook.id, 'FAILED', 1_000],
      [admin.email, webhook.id, 'FAILED', 500],
    ],
  )
})

test('retries waiting deliveries once each, and only those of the preview', async () => {
  const webhook = await createWebhook([...repeat('RETRY_SCHEDULED', 1_200), 'FAILED'])
  const owner = await signInAs(annals, webhook.company, 'OWNER')
  const preview = await previewOf(owner, webhook.path)
  // One was created after the preview, and one has failed again since.
  await query(
    annals.database.connection,
    `update webhook_delivery set sequence = 2000 where webhook_id = '${webhook.id}' and sequence = 1`,
  )
  await query(
    annals.database.connection,
    `update webhook_delivery set updated_at = now() + interval '1 second'
      where webhook_id = '${webhook.id}' and sequence = 2`,
  )
  assert.deepEqual(await retry(owner, webhook.path, 'RETRY_SCHEDULED', preview), [
    { queued: 1_000, archived: 0 },
    { queued: 198, archived: 0 },
  ])
  assert.deepEqual(await webhook.countBy(), { FAILED: 1, PENDING: 1_198, RETRY_SCHEDULED: 2 })
  assert.equal(await webhook.openCount(), 1_200)
  assert.deepEqual(await retry(owner, webhook.path, 'RETRY_SCHEDULED', preview), [
    { queued: 0, archived: 0 },
  ])
})

test('a retry requires an enabled webhook with room for more deliveries, and the role', async () => {
  const { company, id, path, countBy } = await createWebhook(['FAILED'])
  const admin = await signInAs(annals, company, 'ADMIN')
  const preview = await previewOf(admin, path)
  const { throughSequence, previewedAt } = preview
  const body = { status: 'FAILED', throughSequence, previewedAt }
  const { connection } = annals.database
  for (const role of ['VIEWER', 'ANALYST'] satisfies Role[]) {
    const member = await signInAs(annals, company, role, [company.workspace.id])
    const { json } = await member.call('POST', `${path}/retry`, { body })
    assert.equal(json.code, 'insufficient_role')
    assert.equal((await member.call('GET', `${path}/retry`)).status, 200)
  }
  const stranger = await signInAs(annals, await annals.createCompany(), 'OWNER')
  for (const method of ['GET', 'POST']) {
    const options = method === 'GET' ? {} : { body }
    assert.equal((await stranger.call(method, `${path}/retry`, options)).status, 404)
  }
  for (const bad of [
    { ...body, status: 'SUCCEEDED' },
    { ...body, throughSequence: 1e300 },
    { ...body, previewedAt: 'now' },
    { status: 'FAILED' },
  ]) {
    const { json } = await admin.call('POST', `${path}/retry`, { body: bad })
    assert.equal(json.code, 'invalid_request', JSON.stringify(bad))
  }
  await query(connection, `update webhook set open_count = 100000 where id = '${id}'`)
  const full = await admin.call('POST', `${path}/retry`, { body })
  assert.deepEqual([full.status, full.json.code], [409, 'conflict'])
  assert.match(full.json.error, /limit of 100000 pending deliveries/)
  await query(
    connection,
    `update webhook set open_count = 0, status = 'DISABLED' where id = '${id}'`,
  )
  const disabled = await admin.call('POST', `${path}/retry`, { body })
  assert.deepEqual([disabled.status, disabled.json.code], [409, 'conflict'])
  assert.match(disabled.json.error, /disabled/)
  assert.deepEqual(await countBy(), { FAILED: 1 })
})

test('the list shows what each delivery is about, unless its event is archived', async () => {
  const { company, path } = await createWebhook(['FAILED', 'FAILED'], { archivedCount: 1 })
  const viewer = await signInAs(annals, company, 'VIEWER', [company.workspace.id])
  const { json } = await viewer.call('GET', `${path}/deliveries`)
  assert.deepEqual(
    json.data.map(({ event }: Preview) => event),
    [
      null,
      {
        category: 'billing',
        action: 'invoice.paid',
        actorId: null,
        actorEmail: 'ana@acme.example',
      },
    ],
  )
})
