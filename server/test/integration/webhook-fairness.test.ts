import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import { DISPATCH_LIMITS } from '../../src/outlet/webhook/dispatch/dispatch-limits.ts'
import {
  countBy,
  eventIdOf,
  readWebhookState,
  sendEvents,
  waitForDeliveries,
} from '../harness/webhook/deliveries.ts'
import {
  insertManyWebhooks,
  startDispatcher,
  startSilentApp,
} from '../harness/webhook/dispatcher.ts'
import { query } from '../harness/database/engine.ts'
import { eventually, TurnClock, within } from '../harness/timing/eventually.ts'
import { startNameServer } from '../harness/webhook/name-server.ts'
import {
  drip,
  endless,
  hang,
  type Receiver,
  reset,
  startReceiver,
} from '../harness/webhook/receiver.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook, readDeliveries } from '../harness/webhook/webhooks.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const annals = stack.use(await startTestApp({ env: ANY_DESTINATION }))

const LARGE = { text: 'x'.repeat(16 * 1_024) }
/** An attempt at a receiver that hangs or drips outlasts the test, so waiting for one would fail it. */
const PATIENT = { timeoutMs: 120_000, bodyGraceMs: 120_000 }

test('five misbehaving receivers of twenty do not delay the others', async () => {
  await using own = new AsyncDisposableStack()
  const silent = own.use(await startSilentApp())
  const tenant = await silent.createCompany()
  const bad = [hang, reset, drip(), endless(), { status: 500 }]
  const receivers: { receiver: Receiver; id: WebhookId }[] = []
  for (let nth = 0; nth < 20; nth += 1) {
    // The bad ones come before and between the good ones.
    const script = nth % 4 === 0 ? (bad[nth / 4] ?? {}) : {}
    const receiver = own.use(await startReceiver(script))
    receivers.push({ receiver, id: await makeWebhook(silent, tenant, { url: receiver.url }) })
  }
  const healthy = receivers.filter((_, nth) => nth % 4 !== 0)
  const ids = await sendEvents(silent, tenant.workspaceKey, 30)
  startDispatcher(own, silent, { sender: PATIENT })
  for (const { receiver, id } of healthy) {
    await waitForDeliveries(silent, id, 30, 'SUCCEEDED')
    assert.deepEqual(receiver.requests.map(eventIdOf).toSorted(), ids.toSorted())
  }
  for (const nth of [0, 8]) {
    const stuck = receivers[nth]
    assert(stuck)
    assert.equal(stuck.receiver.requestCount, 8)
    const statuses = countBy(await readDeliveries(silent, stuck.id), ({ status }) => status)
    assert(!('SUCCEEDED' in statuses) && (statuses['SENDING'] ?? 0) >= 8, JSON.stringify(statuses))
  }
})

/** How many deliveries are leased, by company. */
async function countLeased({ database }: TestApp): Promise<{ companyId: string; count: number }[]> {
  const rows = await query(
    database.connection,
    `select w.company_id as "companyId", count(*)::int as count
       from webhook_delivery d join webhook w using (workspace_id)
      where d.webhook_id = w.id and d.status = 'SENDING'
      group by 1`,
  )
  return JSON.parse(JSON.stringify(rows))
}

test('limits the deliveries that a node holds, per company and in total', async () => {
  await using own = new AsyncDisposableStack()
  const silent = own.use(await startSilentApp())
  const receiver = own.use(await startReceiver(hang))
  const webhookIds: WebhookId[] = []
  for (let companies = 0; companies < 3; companies += 1) {
    const tenant = await silent.createCompany()
    for (let webhooks = 0; webhooks < 6; webhooks += 1) {
      webhookIds.push(await makeWebhook(silent, tenant, { url: receiver.url }))
    }
    await sendEvents(silent, tenant.workspaceKey, 20)
  }
  const limits = { heldMax: 15, heldPerCompanyMax: 6, firstHeldMax: 0, idleFanOutMs: 50 }
  const dispatcher = startDispatcher(own, silent, { limits, sender: PATIENT })
  await receiver.waitFor(15)
  // Every webhook has been served many times, so all its events have deliveries by now.
  for (const id of webhookIds) {
    await eventually(async () => {
      assert.equal((await readWebhookState(silent, id)).openCount, 20)
    })
  }
  assert.equal(dispatcher.heldCount, 15)
  const leased = await countLeased(silent)
  const counts = leased.map(({ count }) => count).toSorted((a, b) => a - b)
  assert.deepEqual(counts, [3, 6, 6])
  assert.equal(receiver.requestCount, 15)
})

/** A company with twenty events for receivers that never respond, before anything is sent. */
async function startGreedy(
  own: AsyncDisposableStack,
  { webhooks, metadata = {} }: { webhooks: number; metadata?: object },
) {
  const silent = own.use(await startSilentApp())
  const hanging = own.use(await startReceiver(hang))
  const greedy = await silent.createCompany()
  for (let made = 0; made < webhooks; made += 1) {
    await makeWebhook(silent, greedy, { url: hanging.url })
  }
  await sendEvents(silent, greedy.workspaceKey, 20, { metadata })
  return { silent, hanging }
}

test('a company does not delay another one whose receiver is on the same host', async () => {
  await using own = new AsyncDisposableStack()
  const silent = own.use(await startSilentApp())
  const receiver = own.use(
    await startReceiver(({ path }) => (path === '/slow' ? hang : { status: 200 })),
  )
  const greedy = await silent.createCompany()
  const urls = Array.from({ length: 70 }, () => new URL('/slow', receiver.url).href)
  await insertManyWebhooks(silent, greedy, urls)
  await sendEvents(silent, greedy.workspaceKey, 8)
  startDispatcher(own, silent, { sender: PATIENT })
  // The maximum that the node sends for one company at once.
  await receiver.waitFor(DISPATCH_LIMITS.heldPerCompanyMax)
  const modest = await silent.createCompany()
  await makeWebhook(silent, modest, { url: receiver.url })
  await sendEvents(silent, modest.workspaceKey, 1)
  await eventually(() => assert(receiver.requests.some(({ path }) => path !== '/slow')))
})

test('a company gets its first deliveries even on a node that others have filled', async () => {
  await using own = new AsyncDisposableStack()
  const { silent, hanging } = await startGreedy(own, { webhooks: 1 })
  const receiver = own.use(await startReceiver())
  const limits = { heldMax: 6, heldPerCompanyMax: 6 }
  startDispatcher(own, silent, { limits, sender: PATIENT })
  await hanging.waitFor(6)
  const modest = await silent.createCompany()
  await makeWebhook(silent, modest, { url: receiver.url })
  await sendEvents(silent, modest.workspaceKey, 1)
  await receiver.waitFor(1)
})

test('limits the bytes that a company holds, and still sends all its events', async () => {
  await using own = new AsyncDisposableStack()
  const silent = own.use(await startSilentApp())
  const gate = Promise.withResolvers<void>()
  const receiver = own.use(
    await startReceiver(async () => {
      await gate.promise
      return {}
    }),
  )
  const tenant = await silent.createCompany()
  const webhookIds: WebhookId[] = []
  for (let webhooks = 0; webhooks < 8; webhooks += 1) {
    webhookIds.push(await makeWebhook(silent, tenant, { url: receiver.url }))
  }
  await sendEvents(silent, tenant.workspaceKey, 20, { metadata: LARGE })
  const heldBytesPerCompanyMax = 4 * 17 * 1_024
  const limits = { heldBytesPerCompanyMax, idleFanOutMs: 50 }
  const dispatcher = startDispatcher(own, silent, { limits, sender: PATIENT })
  for (const id of webhookIds) {
    await eventually(async () => {
      assert.equal((await readWebhookState(silent, id)).openCount, 20)
    })
  }
  assert.equal(dispatcher.heldCount, 4)
  assert(dispatcher.heldBytes > 4 * 16 * 1_024 && dispatcher.heldBytes <= heldBytesPerCompanyMax)
  gate.resolve()
  for (const id of webhookIds) await waitForDeliveries(silent, id, 20, 'SUCCEEDED')
  assert.equal(receiver.requestCount, 160)
  await eventually(() => assert.equal(dispatcher.heldCount, 0))
  assert.equal(dispatcher.heldBytes, 0)
})

test('large events for a slow receiver do not delay the webhooks of other companies', async () => {
  await using own = new AsyncDisposableStack()
  const { silent, hanging } = await startGreedy(own, { webhooks: 4, metadata: LARGE })
  const receiver = own.use(await startReceiver())
  const heldBytesMax = 16 * 17 * 1_024
  const limits = { heldBytesMax, heldBytesPerCompanyMax: heldBytesMax / 4 }
  const dispatcher = startDispatcher(own, silent, { limits, sender: PATIENT })
  await hanging.waitFor(4)
  const modest = await silent.createCompany()
  const id = await makeWebhook(silent, modest, { url: receiver.url })
  await sendEvents(silent, modest.workspaceKey, 40)
  await waitForDeliveries(silent, id, 40, 'SUCCEEDED')
  assert.equal(hanging.requestCount, 4)
  assert(dispatcher.heldBytes <= heldBytesMax / 4)
})

test('a company gets its first deliveries even if large events of others use all bytes', async () => {
  await using own = new AsyncDisposableStack()
  const { silent, hanging } = await startGreedy(own, { webhooks: 1, metadata: LARGE })
  const receiver = own.use(await startReceiver())
  const limits = { heldBytesMax: 4 * 17 * 1_024, firstHeldBytesMax: 17 * 1_024 }
  startDispatcher(own, silent, { limits, sender: PATIENT })
  await hanging.waitFor(4)
  const modest = await silent.createCompany()
  const id = await makeWebhook(silent, modest, { url: receiver.url })
  await sendEvents(silent, modest.workspaceKey, 20)
  await waitForDeliveries(silent, id, 20, 'SUCCEEDED')
})

test('webhooks that always have work do not starve the others', async () => {
  await using own = new AsyncDisposableStack()
  const silent = own.use(await startSilentApp())
  const deaf = own.use(await startReceiver(hang))
  const healthy = own.use(await startReceiver())
  const tenant = await silent.createCompany()
  for (let webhooks = 0; webhooks < 5; webhooks += 1) {
    await makeWebhook(silent, tenant, { url: deaf.url })
  }
  const id = await makeWebhook(silent, tenant, { url: healthy.url })
  await sendEvents(silent, tenant.workspaceKey, 40)
  startDispatcher(own, silent, {
    limits: { webhooksPerRoundMax: 1, pollMs: 10 },
    sender: PATIENT,
  })
  await waitForDeliveries(silent, id, 40, 'SUCCEEDED')
  assert.equal(healthy.requestCount, 40)
})

test('ten thousand waiting deliveries of one webhook do not slow down another', async () => {
  await using own = new AsyncDisposableStack()
  const slow = own.use(await startReceiver({ afterMs: 50 }))
  const quick = own.use(await startReceiver())
  const tenant = await annals.createCompany()
  const slowId = await makeWebhook(annals, tenant, { url: slow.url })
  await makeWebhook(annals, tenant, { url: quick.url })
  let sent = 0
  const sendTen = async () => {
    using clock = new TurnClock()
    for (const until = sent + 20; sent < until;) {
      await sendEvents(annals, tenant.workspaceKey, 2)
      sent += 2
      await quick.waitFor(sent)
    }
    return clock.ms
  }
  const aloneMs = await sendTen()
  await query(
    annals.database.connection,
    `with made as (
       insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_id, status, attempt,
                                     due_at, created_at, updated_at)
       select '${tenant.workspace.id}', '${slowId}', gen_random_uuid(), n, gen_random_uuid(),
              'PENDING', 0, now(), now(), now()
         from generate_series(1001, 11000) as n)
     update webhook set open_count = open_count + 10000, last_sequence = 11000 where id = '${slowId}'`,
  )
  await slow.waitFor(28)
  const tookMs = await sendTen()
  // On a busy machine, everything takes longer.
  const msMax = Math.max(3_000, 5 * aloneMs)
  assert(tookMs < msMax, `${Math.round(tookMs)} ms, and ${Math.round(aloneMs)} ms before`)
  assert((await readWebhookState(annals, slowId)).openCount > 5_000)
})

test('fifty webhooks whose name server hangs delay neither other companies nor the shutdown', async () => {
  await using own = new AsyncDisposableStack()
  const silent = own.use(await startSilentApp())
  const nameServer = own.use(
    await startNameServer((name) => (name.endsWith('.slow.test') ? 'silence' : ['127.0.0.1'])),
  )
  const receiver = own.use(await startReceiver())
  const port = Number(new URL(receiver.url).port)
  const hanging = await silent.createCompany()
  const slowIds: WebhookId[] = []
  for (let nth = 0; nth < 50; nth += 1) {
    const url = `http://n${nth}.slow.test:${port}/`
    slowIds.push(await makeWebhook(silent, hanging, { url }))
  }
  await sendEvents(silent, hanging.workspaceKey, 8)
  await using dispatching = new AsyncDisposableStack()
  startDispatcher(dispatching, silent, {
    limits: { stopMsMax: 3_000 },
    // Longer than the test, because a lookup that times out counts as an attempt.
    names: { servers: [nameServer.address], lookupMsMax: 120_000 },
    sender: PATIENT,
  })
  const slowNames = () => new Set(nameServer.questions.map((question) => question.split(' ')[0]))
  await eventually(() => assert.equal(slowNames().size, 50))

  const healthy = await silent.createCompany()
  await makeWebhook(silent, healthy, { url: `http://receiver.test:${port}/` })
  await sendEvents(silent, healthy.workspaceKey, 3)
  await within(2_000, receiver.waitFor(3))
  await within(2_000, dispatching.disposeAsync())
  // Nothing was sent, so nothing counts as an attempt, and another node can send immediately.
  for (const id of slowIds) {
    const deliveries = await readDeliveries(silent, id)
    assert.equal(deliveries.length, 8)
    assert(deliveries.every(({ status, attempt }) => status === 'PENDING' && attempt === 0))
  }
})
