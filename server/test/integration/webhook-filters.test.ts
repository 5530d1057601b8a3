import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import type { WebhookFilter } from '../../src/outlet/webhook/webhook.ts'
import { assertId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import {
  eventIdOf,
  sendEvents,
  sequenceOf,
  upTo,
  waitForDeliveries,
} from '../harness/webhook/deliveries.ts'
import { startDispatcher, startSilentApp } from '../harness/webhook/dispatcher.ts'
import { query } from '../harness/database/engine.ts'
import { eventually, TurnClock, within } from '../harness/timing/eventually.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook, readDeliveries } from '../harness/webhook/webhooks.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const env = { ...ANY_DESTINATION, ANNALS_RATE_LIMITS: 'off' }
const annals = stack.use(await startTestApp({ env }))
const { connection } = annals.database

const readWebhook = async (tenant: CreatedCompany, id: WebhookId, node = annals) =>
  (await node.call('GET', `/v1/webhooks/${id}`, { key: tenant.companyKey })).json

const change = (tenant: CreatedCompany, id: WebhookId, body: object) =>
  annals.call('PATCH', `/v1/webhooks/${id}`, { key: tenant.companyKey, body })

/** Pauses or resumes fan-out, so that events wait. */
const pause = (id: WebhookId, until: string) =>
  query(connection, `update webhook set resting_until = ${until} where id = '${id}'`)

/** One of each kind. The last one has neither an actor nor a resource. */
const EVENTS = [
  { category: 'auth', action: 'user.login', actor: { id: 'u1' }, resource: { type: 'session' } },
  { category: 'auth', action: 'user_login', actor: { id: 'u1' }, resource: { type: 'session' } },
  {
    category: 'auth.sso',
    action: 'user.login',
    actor: { id: 'u2' },
    resource: { type: 'api%key' },
  },
  { category: 'AUTH', action: 'user.logout', actor: { id: 'u10' }, resource: { type: 'apikey' } },
  { category: 'billing', action: 'invoice.paid', actor: { email: 'a@b.example' } },
  { category: 'a\\b', action: 'x' },
]

const CASES: [filter: WebhookFilter, matching: number[]][] = [
  [{ categories: ['auth'] }, [0, 1]],
  [{ categories: ['auth*'] }, [0, 1, 2]],
  [{ categories: ['auth', 'billing'] }, [0, 1, 4]],
  [{ categories: ['auth*'], actions: ['user.login'] }, [0, 2]],
  [{ actions: ['user_*'] }, [1]],
  [{ actions: ['user.*'], actorIds: ['u1*'] }, [0, 3]],
  [{ actorIds: ['u1'] }, [0, 1]],
  [{ actorIds: ['*'] }, [0, 1, 2, 3]],
  [{ resourceTypes: ['api%*'] }, [2]],
  [{ resourceTypes: ['*'], categories: ['*'] }, [0, 1, 2, 3]],
  [{ categories: ['a\\b', 'a\\*'] }, [5]],
  [{ categories: ['%'] }, []],
  [{ categories: ['none'], actions: ['*'] }, []],
]

test('a filter selects events by exact text or prefix: all fields must match, with any of their values', async () => {
  const tenant = await annals.createCompany()
  const ids = new Map<WebhookId, (typeof CASES)[number]>()
  for (const [filter, matching] of CASES) {
    const url = 'http://127.0.0.1:9/hook'
    ids.set(await makeWebhook(annals, tenant, { url, filter }), [filter, matching])
  }
  const sent: string[] = []
  for (const event of EVENTS) {
    sent.push(...(await sendEvents(annals, tenant.workspaceKey, 1, event)))
  }
  for (const [id, [filter, matching]] of ids) {
    const about = JSON.stringify(filter)
    const expected = matching.map((index) => sent[index])
    await eventually(async () => {
      const { filteredCount } = await readWebhook(tenant, id)
      assert.equal(filteredCount, EVENTS.length - matching.length, about)
    })
    const deliveries = await readDeliveries(annals, id)
    assert.deepEqual(
      deliveries.map(({ eventId }) => eventId),
      expected,
      about,
    )
    assert.deepEqual(
      deliveries.map(({ sequence }) => sequence),
      upTo(matching.length),
      about,
    )
  }
})

test('two nodes number the matching events without gaps or duplicates, and count the others', async () => {
  await using own = new AsyncDisposableStack()
  const silent = own.use(await startSilentApp())
  const receiver = own.use(await startReceiver())
  const tenant = await silent.createCompany()
  const filter = { actions: ['invoice.*'] }
  const id = await makeWebhook(silent, tenant, { url: receiver.url, filter })
  for (let node = 0; node < 2; node += 1) startDispatcher(own, silent)
  const matching: string[] = []
  let others = 0
  for (let round = 0; round < 20; round += 1) {
    matching.push(...(await sendEvents(silent, tenant.workspaceKey, round % 7)))
    others += (await sendEvents(silent, tenant.workspaceKey, 5, { action: 'user.login' })).length
  }
  await receiver.waitFor(matching.length)
  const rows = await waitForDeliveries(silent, id, matching.length, 'SUCCEEDED')
  assert.deepEqual(
    rows.map(({ eventId }) => eventId),
    matching,
  )
  assert.deepEqual(
    rows.map(({ sequence }) => sequence),
    upTo(matching.length),
  )
  assert.deepEqual(receiver.requests.map(eventIdOf).toSorted(), matching.toSorted())
  assert.deepEqual(
    receiver.requests.map(sequenceOf).toSorted((a, b) => a - b),
    upTo(matching.length),
  )
  await eventually(async () =>
    assert.equal((await readWebhook(tenant, id, silent)).filteredCount, others),
  )
})

test('a changed filter applies to events after the change, and a second change waits for those before', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const { workspaceKey: key } = tenant
  const filter = { actions: ['a.*'] }
  const id = await makeWebhook(annals, tenant, { url: receiver.url, filter })
  await pause(id, `now() + interval '1 hour'`)
  const [first] = await sendEvents(annals, key, 1, { action: 'a.before' })
  await sendEvents(annals, key, 1, { action: 'b.before' })
  assert.equal((await change(tenant, id, { filter: { actions: ['b.*'] } })).status, 200)
  const again = await change(tenant, id, { filter: null })
  assert.deepEqual([again.status, again.json.code], [409, 'conflict'])
  assert.match(again.json.error, /To change it now, disable the webhook/)
  await sendEvents(annals, key, 1, { action: 'a.after' })
  const [second] = await sendEvents(annals, key, 1, { action: 'b.after' })
  await pause(id, 'null')
  await receiver.waitFor(2)
  const rows = await waitForDeliveries(annals, id, 2, 'SUCCEEDED')
  assert.deepEqual(
    rows.map(({ eventId }) => eventId),
    [first, second],
  )
  await eventually(async () =>
    assert.equal((await change(tenant, id, { filter: null })).status, 200),
  )
  const [third] = await sendEvents(annals, key, 1, { action: 'c' })
  await receiver.waitFor(3)
  assert.equal((await readDeliveries(annals, id)).at(-1)?.eventId, third)
})

test('a filter and a project together select only events that match both', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const { workspaceKey: key, project } = tenant
  const filter = { actions: ['a'] }
  await makeWebhook(annals, tenant, { url: receiver.url, projectId: project.id, filter })
  await sendEvents(annals, key, 1, { action: 'a' })
  await sendEvents(annals, key, 1, { action: 'b', projectId: project.id })
  const [both] = await sendEvents(annals, key, 1, { action: 'a', projectId: project.id })
  const requests = await receiver.waitFor(1)
  assert.deepEqual(requests.map(eventIdOf), [both])
})

test('a delivery that the filter now excludes can be redelivered, and a window creates only matching ones', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const { workspaceKey, companyKey: key } = tenant
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  const from = new Date(Date.now() - 60_000).toISOString()
  await sendEvents(annals, workspaceKey, 1, { action: 'a' })
  const [delivery] = await waitForDeliveries(annals, id, 1, 'SUCCEEDED')
  await eventually(async () =>
    assert.equal((await change(tenant, id, { filter: { actions: ['b'] } })).status, 200),
  )
  const path = `/v1/webhooks/${id}`
  const again = await annals.call('POST', `${path}/deliveries/${delivery?.id}/redeliver`, { key })
  assert.equal(again.status, 202, again.text)
  await receiver.waitFor(2)
  await annals.call('POST', `${path}/disable`, { key })
  await sendEvents(annals, workspaceKey, 2, { action: 'a' })
  const missed = await sendEvents(annals, workspaceKey, 3, { action: 'b' })
  await annals.call('POST', `${path}/enable`, { key })
  const body = { from, to: new Date(Date.now() + 60_000).toISOString() }
  const { json } = await annals.call('POST', `${path}/redeliver`, { key, body })
  assert.equal(json.made, missed.length)
  const rows = await waitForDeliveries(annals, id, 1 + missed.length, 'SUCCEEDED')
  assert.deepEqual(
    rows.slice(1).map(({ eventId }) => eventId),
    missed,
  )
})

test('filteredCount excludes events that a disabled webhook skipped, and a redelivery keeps it', async () => {
  const tenant = await annals.createCompany()
  const { workspaceKey, companyKey: key } = tenant
  const filter = { actions: ['b'] }
  const id = await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:9/hook', filter })
  const from = new Date(Date.now() - 60_000).toISOString()
  await sendEvents(annals, workspaceKey, 2, { action: 'a' })
  const counted = async () => (await readWebhook(tenant, id)).filteredCount
  await eventually(async () => assert.equal(await counted(), 2))
  const path = `/v1/webhooks/${id}`
  await annals.call('POST', `${path}/disable`, { key })
  await sendEvents(annals, workspaceKey, 3, { action: 'a' })
  await annals.call('POST', `${path}/enable`, { key })
  assert.equal((await change(tenant, id, { filter: null })).status, 200)
  const body = { from, to: new Date(Date.now() + 60_000).toISOString() }
  const { json } = await annals.call('POST', `${path}/redeliver`, { key, body })
  assert.deepEqual([json.made, await counted()], [5, 2])
})

test('events that a filter leaves out don’t delay a matching one', async () => {
  await using receiver = await startReceiver()
  const tenant = await annals.createCompany()
  const filter = { categories: ['auth'] }
  const id = await makeWebhook(annals, tenant, { url: receiver.url, filter })
  using clock = new TurnClock()
  await sendEvents(annals, tenant.workspaceKey, 10_000)
  const storingMs = clock.ms
  await sendEvents(annals, tenant.workspaceKey, 1, { category: 'auth' })
  await within(Math.max(3_000, 2 * storingMs), receiver.waitFor(1))
  assert.equal((await readWebhook(tenant, id)).filteredCount, 10_000)
})

test('a delivery record has the position of its event, so that a reader finds what was left out', async () => {
  const tenant = await annals.createCompany()
  const filter = { actions: ['b'] }
  const url = 'http://127.0.0.1:9/hook'
  const id = await makeWebhook(annals, tenant, { url, filter })
  for (const action of ['a', 'b', 'a', 'a', 'b']) {
    await sendEvents(annals, tenant.workspaceKey, 1, { action })
  }
  await eventually(async () => assert.equal((await readDeliveries(annals, id)).length, 2))
  const path = `/v1/webhooks/${id}/deliveries?afterSequence=0`
  const { json } = await annals.call('GET', path, { key: tenant.companyKey })
  assert.deepEqual(
    json.data.map(({ sequence, eventSeq }: Record<string, number>) => [sequence, eventSeq]),
    [
      [1, 2],
      [2, 5],
    ],
  )
})

test('refuses names and filters that break a rule', async () => {
  const tenant = await annals.createCompany()
  const url = 'http://127.0.0.1:9/hook'
  const key = tenant.companyKey
  const id = await makeWebhook(annals, tenant, { url })
  const path = `/v1/workspaces/${tenant.workspace.id}/webhooks`
  const texts = (count: number) => Array.from({ length: count }, (_, nth) => `${nth}`)
  const faults: [fields: object, path: string][] = [
    [{ name: '' }, '/name'],
    [{ name: ' ' }, '/name'],
    [{ name: 'a\nb' }, '/name'],
    [{ name: 'x'.repeat(65) }, '/name'],
    [{ name: 1 }, '/name'],
    [{ filter: {} }, '/filter'],
    [{ filter: [] }, '/filter'],
    [{ filter: { categories: 'auth' } }, '/filter/categories'],
    [{ filter: { categories: [] } }, '/filter/categories'],
    [{ filter: { categories: null } }, '/filter/categories'],
    [{ filter: { categories: texts(21) } }, '/filter/categories'],
    [{ filter: { categories: ['a', 'a'] } }, '/filter/categories'],
    [{ filter: { categories: [''] } }, '/filter/categories/0'],
    [{ filter: { categories: [1] } }, '/filter/categories/0'],
    [{ filter: { categories: ['a\0'] } }, '/filter/categories/0'],
    [{ filter: { categories: ['x'.repeat(257)] } }, '/filter/categories/0'],
    [{ filter: { actions: ['ok', '*.login'] } }, '/filter/actions/1'],
    [{ filter: { actorIds: ['a**'] } }, '/filter/actorIds/0'],
    [{ filter: { resourceTypes: ['a*b'] } }, '/filter/resourceTypes/0'],
    [{ filter: { actorEmails: ['a'] } }, '/filter/actorEmails'],
    [{ filter: { actorIds: texts(20).map((text) => text.padStart(150, '…')) } }, '/filter'],
  ]
  for (const [fields, at] of faults) {
    for (const { status, json, text } of [
      await annals.call('POST', path, { key, body: { url, ...fields } }),
      await change(tenant, id, fields),
    ]) {
      assert.deepEqual([status, json.code], [400, 'invalid_request'], JSON.stringify(fields))
      assert(
        json.details.some((detail: { path: string }) => detail.path === at),
        text,
      )
    }
  }
  const longest = texts(20).map((text) => text.padStart(256, 'x'))
  const fine = { name: ' Sign-ins ', filter: { categories: texts(20), actions: longest } }
  const created = await annals.call('POST', path, { key, body: { url, ...fine } })
  assert.equal(created.status, 201, created.text)
  const { name, filter } = await readWebhook(tenant, assertId(created.json.id))
  assert.deepEqual({ name, filter }, { ...fine, name: 'Sign-ins' })
  const cleared = await change(tenant, assertId(created.json.id), { name: null, filter: null })
  assert.deepEqual([cleared.json.name, cleared.json.filter], [null, null])
})
