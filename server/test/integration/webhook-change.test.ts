import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { newId } from '../../src/platform/id.ts'
import { readWebhookState, sendEvents } from '../harness/webhook/deliveries.ts'
import { query } from '../harness/database/engine.ts'
import { eventually, TurnClock, within } from '../harness/timing/eventually.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook, readDeliveries } from '../harness/webhook/webhooks.ts'

const annals = await startTestApp({ env: { ...ANY_DESTINATION, ANNALS_RATE_LIMITS: 'off' } })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database

const change = (id: string, key: string, body: object) =>
  annals.call('PATCH', `/v1/webhooks/${id}`, { key, body })

test('a changed project applies to later events only, and waiting ones keep theirs', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const { companyKey, workspaceKey, workspace, project } = tenant
  const other = newId<'project'>()
  await query(
    connection,
    `insert into project (workspace_id, id, name) values ('${workspace.id}', '${other}', 'Other')`,
  )
  const id = await makeWebhook(annals, tenant, { url: receiver.url, projectId: project.id })
  await query(
    connection,
    `update webhook set resting_until = now() + interval '1 hour' where id = '${id}'`,
  )
  await sendEvents(annals, workspaceKey, 3, { projectId: project.id })
  await sendEvents(annals, workspaceKey, 2, { projectId: other })
  assert.equal((await change(id, companyKey, { projectId: other })).status, 200)
  const again = await change(id, companyKey, { projectId: null })
  assert.deepEqual([again.status, again.json.code], [409, 'conflict'])
  await sendEvents(annals, workspaceKey, 4, { projectId: project.id })
  await sendEvents(annals, workspaceKey, 5, { projectId: other })
  await query(connection, `update webhook set resting_until = null where id = '${id}'`)
  await receiver.waitFor(3 + 5)
  const projects = receiver.requests.map(({ body }) => JSON.parse(body.toString()).projectId)
  assert.equal(projects.filter((projectId) => projectId === project.id).length, 3)
  assert.equal(projects.filter((projectId) => projectId === other).length, 5)
  await eventually(async () =>
    assert.equal((await change(id, companyKey, { projectId: null })).status, 200),
  )
})

test('the project of a disabled webhook can be changed repeatedly', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const { companyKey, workspaceKey, project } = tenant
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  const call = (verb: string) =>
    annals.call('POST', `/v1/webhooks/${id}/${verb}`, { key: companyKey })
  assert.equal((await call('disable')).status, 200)
  for (const projectId of [project.id, null, project.id]) {
    await sendEvents(annals, workspaceKey, 1)
    assert.equal((await change(id, companyKey, { projectId })).status, 200)
  }
  assert.equal((await call('enable')).status, 200)
  await sendEvents(annals, workspaceKey, 1)
  const [eventId] = await sendEvents(annals, workspaceKey, 1, { projectId: project.id })
  await eventually(async () =>
    assert.deepEqual(
      (await readDeliveries(annals, id)).map((delivery) => delivery.eventId),
      [eventId],
    ),
  )
})

test('a late 410 from the previous URL does not disable the webhook', async () => {
  let respondLate = () => {}
  const isLate = new Promise<void>((resolve) => (respondLate = resolve))
  await using old = await startReceiver(async () => {
    await isLate
    return { status: 410 }
  })
  await using fresh = await startReceiver()
  const tenant = await annals.createCompany()
  const id = await makeWebhook(annals, tenant, { url: old.url })
  await sendEvents(annals, tenant.workspaceKey, 1)
  await old.waitFor(1)
  assert.equal((await change(id, tenant.companyKey, { url: fresh.url })).status, 200)
  respondLate()
  await eventually(async () =>
    assert.equal((await readDeliveries(annals, id))[0]?.status, 'FAILED'),
  )
  await sendEvents(annals, tenant.workspaceKey, 3)
  await fresh.waitFor(3)
  assert.equal((await readWebhookState(annals, id)).status, 'ENABLED')
})

test('many events of other projects do not delay those of a project', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const { workspaceKey, project } = tenant
  await makeWebhook(annals, tenant, { url: receiver.url, projectId: project.id })
  using clock = new TurnClock()
  await sendEvents(annals, workspaceKey, 10_000)
  const storingMs = clock.ms
  await sendEvents(annals, workspaceKey, 1, { projectId: project.id })
  await within(Math.max(3_000, 2 * storingMs), receiver.waitFor(1))
})
