import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import { failWaitingAndEnable } from '../../src/outlet/webhook/enable-webhook.ts'
import { markWebhookDeleted, markWebhookDisabled } from '../../src/outlet/webhook/webhook-store.ts'
import { newId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { insertProject } from '../../src/tenancy/workspace/workspace-store.ts'
import {
  deliveryIdOf,
  eventIdOf,
  readWebhookState,
  sendEvents,
  sequenceOf,
  upTo,
  waitForDeliveries,
} from '../harness/webhook/deliveries.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { walkEvents } from '../harness/event/ledger.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../harness/webhook/receiver.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'
import {
  ANY_DESTINATION,
  makeWebhook,
  readDeliveries,
  SECRET,
} from '../harness/webhook/webhooks.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const env = { ...ANY_DESTINATION, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') }
const annals = stack.use(await startTestApp({ env }))

/** The lock of a caller that neither locks nor writes an audit entry. */
const unaudited = async () => async () => {}

const sorted = (texts: readonly string[]) => texts.toSorted()

/** Exactly these events have arrived, each once, and the sequence has no gaps. */
function assertExactly(receiver: Receiver, ids: readonly string[]): void {
  assert.deepEqual(sorted(receiver.requests.map(eventIdOf)), sorted(ids))
  const sequences = receiver.requests.map(sequenceOf).toSorted((a, b) => a - b)
  assert.deepEqual(sequences, upTo(ids.length))
}

async function addProject({ company, workspace }: CreatedCompany) {
  const id = newId<'project'>()
  const project = { id, companyId: company.id, workspaceId: workspace.id, name: 'Payroll' }
  await annals.app.database.db.transaction().execute((db) => insertProject(db, project))
  return id
}

test('every event is sent once to every webhook of its workspace and project, and to no others', async () => {
  const ours = await annals.createCompany({ workspaces: ['Production', 'Staging'] })
  const theirs = await annals.createCompany()
  const [, staging] = ours.workspaces
  assert(staging)
  const otherProject = await addProject(ours)
  const names = ['all', 'all too', 'project', 'other project', 'staging', 'theirs'] as const
  await using own = new AsyncDisposableStack()
  const receivers: Record<string, Receiver> = {}
  for (const name of names) receivers[name] = own.use(await startReceiver())
  const to = (name: (typeof names)[number]) => ({ url: receivers[name]?.url ?? '' })
  await makeWebhook(annals, ours, to('all'))
  await makeWebhook(annals, ours, to('all too'))
  await makeWebhook(annals, ours, { ...to('project'), projectId: ours.project.id })
  await makeWebhook(annals, ours, { ...to('other project'), projectId: otherProject })
  await makeWebhook(annals, { ...ours, workspace: staging }, to('staging'))
  await makeWebhook(annals, theirs, to('theirs'))

  const key = ours.workspaceKey
  const plain = await sendEvents(annals, key, 20)
  const billing = await sendEvents(annals, key, 20, { projectId: ours.project.id })
  const payroll = await sendEvents(annals, key, 20, { projectId: otherProject })
  const staged = await sendEvents(annals, staging.workspaceKey, 5)
  const foreign = await sendEvents(annals, theirs.workspaceKey, 5)

  const expected: Record<(typeof names)[number], string[]> = {
    all: [...plain, ...billing, ...payroll],
    'all too': [...plain, ...billing, ...payroll],
    project: billing,
    'other project': payroll,
    staging: staged,
    theirs: foreign,
  }
  for (const name of names) await receivers[name]?.waitFor(expected[name].length)
  // One more for all, so that surplus deliveries would have arrived by now.
  const last = await sendEvents(annals, key, 1)
  await receivers.all?.waitFor(61)
  await receivers['all too']?.waitFor(61)
  for (const name of names) {
    const receiver = receivers[name]
    assert(receiver)
    assertExactly(receiver, [...expected[name], ...(name.startsWith('all') ? last : [])])
  }
})

const OUR_HEADERS = [
  'content-type',
  'user-agent',
  'webhook-id',
  'webhook-signature',
  'webhook-timestamp',
  'x-service-attempt',
  'x-service-delivery-id',
  'x-service-sequence',
  'x-service-signature',
  'x-service-timestamp',
  'x-trace-id',
]
/** Headers that HTTP itself needs. */
const HTTP_HEADERS = ['connection', 'content-length', 'host']

function assertSigned({ body, headers }: ReceivedRequest, secret: string): void {
  const hmac = createHmac('sha256', secret).update(body).digest('hex')
  assert.equal(headers['x-service-signature'], `v1=${hmac}`)
  const isGenerated = secret.startsWith('whsec_')
  const standard = isGenerated
    ? new Webhook(secret)
    : new Webhook(Buffer.from(secret), { format: 'raw' })
  standard.verify(body.toString(), headers)
}

test('a delivery has the headers of the contract and both signatures, with any secret', async () => {
  const tenant = await annals.createCompany()
  const custom = 'correct horse battery staple ä'
  await using generatedReceiver = await startReceiver()
  await using customReceiver = await startReceiver()
  const webhookId = await makeWebhook(annals, tenant, { url: generatedReceiver.url })
  await makeWebhook(annals, tenant, { url: customReceiver.url, secret: custom })
  const traceId = 'ab'.repeat(16)
  const startedAtSeconds = Math.floor(Date.now() / 1_000)
  const { status } = await annals.call('POST', '/v1/events', {
    key: tenant.workspaceKey,
    body: { category: 'auth', action: 'user.login', metadata: { name: 'Zoë 🎉 \u0007' } },
    headers: { traceparent: `00-${traceId}-00f067aa0ba902b7-01` },
  })
  assert.equal(status, 201)
  const [first] = await generatedReceiver.waitFor(1)
  const [second] = await customReceiver.waitFor(1)
  assert(first && second)
  assertSigned(first, SECRET)
  assertSigned(second, custom)
  assert.deepEqual(
    Object.keys(first.headers).toSorted(),
    [...HTTP_HEADERS, ...OUR_HEADERS].toSorted(),
  )
  const [row] = await waitForDeliveries(annals, webhookId, 1, 'SUCCEEDED')
  const seconds = Number(first.headers['x-service-timestamp'])
  assert(seconds >= startedAtSeconds && seconds <= Math.ceil(Date.now() / 1_000))
  assert.equal(first.method, 'POST')
  assert.equal(first.headers['content-type'], 'application/json')
  assert.equal(first.headers['x-service-delivery-id'], row?.id)
  assert.equal(first.headers['webhook-id'], row?.id)
  assert.equal(first.headers['x-service-attempt'], '1')
  assert.equal(first.headers['x-service-sequence'], '1')
  assert.equal(first.headers['x-trace-id'], traceId)
  assert.notEqual(deliveryIdOf(first), deliveryIdOf(second))
})

test('the body is the event as a query returns it, with exactly the fields of the contract', async () => {
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver()
  await makeWebhook(annals, tenant, { url: receiver.url })
  const full = {
    category: 'billing',
    action: 'invoice.paid',
    projectId: tenant.project.id,
    timestamp: '2026-01-02T03:04:05.678Z',
    actor: { id: 'u1', email: 'u1@example.com', role: 'admin' },
    resource: { type: 'invoice', id: 'i1' },
    metadata: { amount: 12.5, nested: { list: [1, null, 'ä'] } },
  }
  for (const body of [full, { category: 'auth', action: 'user.login' }]) {
    const { status } = await annals.call('POST', '/v1/events', { key: tenant.workspaceKey, body })
    assert.equal(status, 201)
  }
  await receiver.waitFor(2)
  const stored = await walkEvents(annals, tenant.workspaceKey)
  for (const { id, ...record } of stored) {
    const request = receiver.requests.find((one) => eventIdOf(one) === id)
    assert(request)
    const { seq: _seq, receivedAt: _receivedAt, ...shown } = record
    const present = Object.entries({ id, ...shown }).filter(([, value]) => value !== null)
    assert.deepEqual(JSON.parse(request.body.toString()), Object.fromEntries(present))
  }
})

const webhookOf = ({ workspace }: CreatedCompany, id: WebhookId) => ({
  workspaceId: workspace.id,
  id,
})

test('a disabled webhook gets nothing: pending deliveries fail, and after enabling only new events are sent', async () => {
  const { db } = annals.app.database
  const tenant = await annals.createCompany()
  const gate = Promise.withResolvers<void>()
  await using receiver = await startReceiver(async () => {
    await gate.promise
    return { status: 500 }
  })
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  await sendEvents(annals, tenant.workspaceKey, 60)
  await receiver.waitFor(8)
  const reason = 'Somebody switched it off.'
  await markWebhookDisabled(db, webhookOf(tenant, id), { reason, now: new Date() })
  const unseen = await sendEvents(annals, tenant.workspaceKey, 10)
  // Deliveries in flight can finish. All others have ended without being sent.
  await eventually(async () => {
    const rows = await readDeliveries(annals, id)
    assert.equal(rows.filter(({ status }) => status === 'SENDING').length, 8)
    assert(rows.every(({ status }) => status === 'SENDING' || status === 'FAILED'))
  })
  gate.resolve()
  const ended = await eventually(async () => {
    const rows = await readDeliveries(annals, id)
    assert(rows.every(({ status }) => status === 'FAILED'))
    return rows
  })
  assert(ended.every(({ failureReason }) => failureReason === reason))
  assert.equal(receiver.requestCount, 8)
  assert.equal((await readWebhookState(annals, id)).openCount, 0)

  receiver.respondWith({})
  assert(await failWaitingAndEnable(db, webhookOf(tenant, id), Date.now, unaudited))
  const fresh = await sendEvents(annals, tenant.workspaceKey, 5)
  await receiver.waitFor(13)
  const came = receiver.requests.slice(8).map(eventIdOf)
  assert.deepEqual(sorted(came), sorted(fresh))
  assert(!came.some((eventId) => unseen.includes(eventId)))
  const sequences = (await readDeliveries(annals, id)).map(({ sequence }) => sequence)
  assert.deepEqual(sequences, upTo(sequences.length))
})

test('a webhook shows its last success and failure, and its failures since', async () => {
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver({ status: 500 })
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  const startedAtMs = Date.now()
  await sendEvents(annals, tenant.workspaceKey, 3)
  await waitForDeliveries(annals, id, 3, 'RETRY_SCHEDULED')
  const failing = await readWebhookState(annals, id)
  assert.equal(failing.failureCount, 3)
  assert.equal(failing.openCount, 3)
  assert.equal(failing.lastSuccessAtMs, null)
  assert(failing.failingSinceMs !== null && failing.lastFailureAtMs !== null)
  assert(failing.failingSinceMs >= startedAtMs && failing.lastFailureAtMs >= failing.failingSinceMs)

  receiver.respondWith({})
  await sendEvents(annals, tenant.workspaceKey, 1)
  const healthy = await eventually(async () => {
    const state = await readWebhookState(annals, id)
    assert(state.lastSuccessAtMs !== null)
    return state
  })
  assert.equal(healthy.failureCount, 0)
  assert.equal(healthy.failingSinceMs, null)
  assert.equal(healthy.lastFailureAtMs, failing.lastFailureAtMs)
  assert.equal(healthy.openCount, 3)
  assert.equal(healthy.lastSequence, 4)
})

test('a deleted webhook gets nothing more and cannot be enabled again', async () => {
  const { db } = annals.app.database
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver()
  await using other = await startReceiver()
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  await makeWebhook(annals, tenant, { url: other.url })
  await sendEvents(annals, tenant.workspaceKey, 3)
  await waitForDeliveries(annals, id, 3, 'SUCCEEDED')
  assert(await markWebhookDeleted(db, webhookOf(tenant, id), new Date()))
  await sendEvents(annals, tenant.workspaceKey, 5)
  await other.waitFor(8)
  assert.equal(receiver.requestCount, 3)
  assert.equal((await readDeliveries(annals, id)).length, 3)
  assert(!(await failWaitingAndEnable(db, webhookOf(tenant, id), Date.now, unaudited)))
})

async function countAccepted({ app }: TestApp): Promise<number> {
  const text = await (await fetch(`${app.metricsUrl}/metrics`)).text()
  const line = /^annals_delivery_attempt_total\{result="accepted"\} (\d+)/m.exec(text)
  return Number(line?.[1] ?? 0)
}

test('two nodes deliver 1,000 events to 3 webhooks exactly once each', async () => {
  const databaseUrl = annals.database.url
  const nodeEnv = { ...env, ANNALS_METRICS_PORT: '0' }
  await using own = new AsyncDisposableStack()
  const nodes = [
    own.use(await startTestApp({ databaseUrl, env: nodeEnv })),
    own.use(await startTestApp({ databaseUrl, env: nodeEnv })),
  ]
  const tenant = await annals.createCompany()
  const receivers: Receiver[] = []
  const webhookIds: WebhookId[] = []
  for (let nth = 0; nth < 3; nth += 1) {
    const receiver = own.use(await startReceiver())
    receivers.push(receiver)
    webhookIds.push(await makeWebhook(annals, tenant, { url: receiver.url }))
  }
  const sends = Array.from({ length: 20 }, (_, nth) => {
    const node = nodes[nth % 2]
    assert(node)
    return sendEvents(node, tenant.workspaceKey, 50)
  })
  const ids = (await Promise.all(sends)).flat()
  assert.equal(ids.length, 1_000)
  for (const [nth, receiver] of receivers.entries()) {
    const webhookId = webhookIds[nth]
    assert(webhookId)
    const rows = await waitForDeliveries(annals, webhookId, 1_000, 'SUCCEEDED')
    assert.deepEqual(sorted(rows.map(({ eventId }) => eventId)), sorted(ids))
    assert.deepEqual(
      rows.map(({ sequence }) => sequence),
      upTo(1_000),
    )
    assert(rows.every(({ attempt }) => attempt === 1))
    assertExactly(receiver, ids)
    assert.equal((await readWebhookState(annals, webhookId)).openCount, 0)
  }
  for (const node of nodes) assert((await countAccepted(node)) > 0)
})
