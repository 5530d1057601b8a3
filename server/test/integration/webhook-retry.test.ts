import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import { findDelivery, redeliver } from '../../src/outlet/webhook/delivery/delivery-store.ts'
import { assertId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { newId } from '../../src/platform/id.ts'
import { getSystemWorkspace } from '../../src/tenancy/workspace/workspace-store.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { readAudit } from '../harness/dashboard/dashboard.ts'
import {
  deliveryIdOf,
  readWebhookState,
  sendEvents,
  upTo,
  waitForDeliveries,
} from '../harness/webhook/deliveries.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { type Reply, startReceiver } from '../harness/webhook/receiver.ts'
import { startTestApp, type TestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook, readDeliveries } from '../harness/webhook/webhooks.ts'

const DAY_MS = 86_400_000
const JITTER_MAX = 1.2
const WAITS_SECONDS = [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const env = { ...ANY_DESTINATION, ANNALS_SECRET_KEY: randomBytes(32).toString('base64') }

/** A service whose clock only the test moves. */
async function startFrozen() {
  const own = stack.use(new AsyncDisposableStack())
  const { clock, advance } = manualClock()
  const annals = own.use(await startTestApp({ env, clock }))
  const bell = own.use(await startReceiver())
  const ringer = await annals.createCompany()
  await makeWebhook(annals, ringer, { url: bell.url })
  /** Resolves after the dispatcher has processed everything that is due now. */
  const dispatchDue = async (): Promise<void> => {
    for (let times = 0; times < 2; times += 1) {
      const before = bell.requestCount
      await sendEvents(annals, ringer.workspaceKey, 1)
      await bell.waitFor(before + 1)
    }
  }
  return { annals, clock, advance, dispatchDue }
}

const frozen = await startFrozen()
const { annals, clock, advance, dispatchDue } = frozen

async function readDelivery(node: TestApp, tenant: CreatedCompany, webhookId: WebhookId) {
  const [row] = await readDeliveries(node, webhookId)
  assert(row)
  const delivery = await findDelivery(node.app.database.db, {
    workspaceId: tenant.workspace.id,
    webhookId,
    deliveryId: assertId(row.id),
  })
  assert(delivery)
  return delivery
}

/** The only delivery of a webhook, once this attempt has ended. */
async function attemptEnded(tenant: CreatedCompany, webhookId: WebhookId, attempt: number) {
  return await eventually(async () => {
    const delivery = await readDelivery(annals, tenant, webhookId)
    assert.equal(delivery.attempt, attempt)
    assert.notEqual(delivery.status, 'SENDING')
    return delivery
  })
}

function assertWaits(nextAttemptAt: Date | null, waitSeconds: number): void {
  const waitMs = (nextAttemptAt?.getTime() ?? 0) - clock()
  assert(waitMs >= waitSeconds * 1_000, `${waitMs} ms`)
  assert(waitMs <= waitSeconds * 1_000 * JITTER_MAX, `${waitMs} ms`)
}

test('a delivery is attempted eight times on schedule, with the same bytes, then fails', async () => {
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver({ status: 500, body: 'out of order' })
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  await sendEvents(annals, tenant.workspaceKey, 1, { metadata: { name: 'Zoë' } })
  for (const [index, waitSeconds] of WAITS_SECONDS.entries()) {
    const { status, nextAttemptAt } = await attemptEnded(tenant, id, index + 1)
    assert.equal(status, 'RETRY_SCHEDULED')
    assertWaits(nextAttemptAt, waitSeconds)
    const leftMs = (nextAttemptAt?.getTime() ?? 0) - clock()
    advance(leftMs - 1)
    await dispatchDue()
    assert.equal(receiver.requestCount, index + 1)
    advance(1)
  }
  const failed = await attemptEnded(tenant, id, 8)
  assert.equal(failed.status, 'FAILED')
  assert.equal(failed.failureReason, 'The receiver responded with 500.')
  assert.equal(failed.nextAttemptAt, null)
  assert.deepEqual(
    failed.attempts.map(({ attempt, excerpt }) => [attempt, excerpt]),
    upTo(8).map((attempt) => [attempt, 'out of order']),
  )
  advance(2 * DAY_MS)
  await dispatchDue()
  assert.equal(receiver.requestCount, 8)
  const [first] = receiver.requests
  assert(first)
  for (const [index, { body, headers }] of receiver.requests.entries()) {
    assert(body.equals(first.body))
    assert.equal(headers['x-service-delivery-id'], deliveryIdOf(first))
    assert.equal(headers['x-service-sequence'], '1')
    assert.equal(headers['x-service-attempt'], String(index + 1))
  }

  await redeliverOnce(tenant, id)
  const again = await attemptEnded(tenant, id, 9)
  assert.equal(again.status, 'RETRY_SCHEDULED')
  assertWaits(again.nextAttemptAt, 5)
  receiver.respondWith({})
  advance(6_000)
  const delivered = await attemptEnded(tenant, id, 10)
  assert.equal(delivered.status, 'SUCCEEDED')
  assert.equal(delivered.failureReason, null)
  const last = receiver.requests.at(-1)
  assert.equal(last?.headers['x-service-attempt'], '10')
  assert(last?.body.equals(first.body))
  assert.equal((await readWebhookState(annals, id)).openCount, 0)
})

async function redeliverOnce(tenant: CreatedCompany, webhookId: WebhookId): Promise<void> {
  const { id: deliveryId } = await readDelivery(annals, tenant, webhookId)
  const where = { workspaceId: tenant.workspace.id, webhookId, deliveryId, now: new Date(clock()) }
  const { db } = annals.app.database
  assert.deepEqual(await Promise.all([redeliver(db, where), redeliver(db, where)]).then(sorted), [
    false,
    true,
  ])
}

const sorted = (flags: boolean[]) => flags.toSorted((a, b) => Number(a) - Number(b))

test('honors a pause that the receiver requests, up to twice the planned one and never shorter', async () => {
  const tenant = await annals.createCompany()
  for (const [retryAfter, waitSeconds] of [
    ['1', 5],
    ['8', 8],
    ['86400', 10],
  ] as const) {
    await using receiver = await startReceiver({
      status: 503,
      headers: { 'retry-after': retryAfter },
    })
    const id = await makeWebhook(annals, tenant, { url: receiver.url })
    await sendEvents(annals, tenant.workspaceKey, 1)
    const { nextAttemptAt } = await attemptEnded(tenant, id, 1)
    assertWaits(nextAttemptAt, waitSeconds)
  }
})

test('a 410 disables the webhook and fails its pending deliveries', async () => {
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver({ status: 410 })
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  await sendEvents(annals, tenant.workspaceKey, 100)
  const state = await eventually(async () => {
    const now = await readWebhookState(annals, id)
    assert.equal(now.status, 'DISABLED')
    assert.equal(now.openCount, 0)
    return now
  })
  assert.match(state.disabledReason ?? '', /410/)
  // Up to 16 deliveries got the response.
  assert.deepEqual(await disablings(tenant), [entryOf(id, receiver.url, state.disabledReason)])
  const rows = await readDeliveries(annals, id)
  assert(rows.every(({ status, failureReason }) => status === 'FAILED' && failureReason))
  const before = receiver.requestCount
  // At most what was fetched before the first response.
  assert(before <= 16, `${before} requests`)
  await sendEvents(annals, tenant.workspaceKey, 5)
  advance(DAY_MS)
  await dispatchDue()
  assert.equal(receiver.requestCount, before)
})

test('five days of failures disable a webhook, unless there is a success in between', async () => {
  const tenant = await annals.createCompany()
  await using deaf = await startReceiver({ status: 500 })
  await using flaky = await startReceiver({ status: 500 })
  const deafId = await makeWebhook(annals, tenant, { url: deaf.url })
  const flakyId = await makeWebhook(annals, tenant, { url: flaky.url })
  const failures = (count: number) =>
    eventually(async () => {
      for (const id of [deafId, flakyId]) {
        assert((await readWebhookState(annals, id)).failureCount >= count)
      }
    })
  await sendEvents(annals, tenant.workspaceKey, 1)
  await failures(1)
  flaky.respondWith({})
  advance(3 * DAY_MS)
  await waitForDeliveries(annals, flakyId, 1, 'SUCCEEDED')
  await attemptEnded(tenant, deafId, 2)
  flaky.respondWith({ status: 500 })
  advance(2 * DAY_MS - 60_000)
  await sendEvents(annals, tenant.workspaceKey, 1)
  await failures(1)
  await dispatchDue()
  assert.equal((await readWebhookState(annals, deafId)).status, 'ENABLED')
  advance(120_000)
  await eventually(async () => {
    const { status, disabledReason, openCount } = await readWebhookState(annals, deafId)
    assert.equal(status, 'DISABLED')
    assert.equal(disabledReason, 'No delivery succeeded for five days.')
    assert.equal(openCount, 0)
  })
  await dispatchDue()
  assert.equal((await readWebhookState(annals, flakyId)).status, 'ENABLED')
  const reason = 'No delivery succeeded for five days.'
  assert.deepEqual(await disablings(tenant), [entryOf(deafId, deaf.url, reason)])
})

const disablings = async (tenant: CreatedCompany) =>
  (await readAudit(annals, tenant)).filter(({ action }) => action === 'WEBHOOK_DISABLED')

const entryOf = (id: string, url: string, reason: string | null) => ({
  action: 'WEBHOOK_DISABLED',
  actor: { id: 'annals', role: 'service' },
  resource: { type: 'webhook', id },
  metadata: { reason, url },
})

test('a webhook that is disabled automatically has an audit entry, or stays enabled', async () => {
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver({ status: 410 })
  const systemId = await getSystemWorkspace(annals.app.database.db, tenant.company.id)
  const moveHead = (from: string, to: string) =>
    query(
      annals.database.connection,
      `update chain_head set workspace_id = '${to}' where workspace_id = '${from}'`,
    )
  const otherId = newId()
  await moveHead(systemId, otherId)
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  await sendEvents(annals, tenant.workspaceKey, 1)
  await attemptEnded(tenant, id, 1)
  assert.equal((await readWebhookState(annals, id)).status, 'ENABLED')
  await moveHead(otherId, systemId)
  await sendEvents(annals, tenant.workspaceKey, 1)
  await eventually(async () =>
    assert.equal((await readWebhookState(annals, id)).status, 'DISABLED'),
  )
  assert.equal((await disablings(tenant)).length, 1)
})

test('after ten failures in a row a receiver gets single probes with growing pauses, and everything after a success', async () => {
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver()
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  // While the receiver responds within two seconds, its lane grows, so that many fail at once. A third of these are
  // enough, because a busy machine delays some.
  const good = 400
  await sendEvents(annals, tenant.workspaceKey, good)
  await waitForDeliveries(annals, id, good, 'SUCCEEDED')
  const [early, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let attempts = 0
  receiver.respondWith(async () => {
    attempts += 1
    await (attempts <= 20 ? early : late).promise
    return { status: 500 }
  })
  await sendEvents(annals, tenant.workspaceKey, 300)
  await receiver.waitFor(good + 32)
  early.resolve()
  await eventually(async () => {
    const { failureCount, restingUntilMs } = await readWebhookState(annals, id)
    assert.equal(failureCount, 20)
    assert.equal(restingUntilMs, clock() + 1_000)
  })
  // Deliveries in flight when the rest started don't extend it.
  late.resolve()
  await eventually(async () => {
    await dispatchDue()
    const { failureCount, restingUntilMs } = await readWebhookState(annals, id)
    assert(failureCount >= 32)
    assert.equal(restingUntilMs, clock() + 1_000)
    const rows = await readDeliveries(annals, id)
    assert(!rows.some(({ status }) => status === 'SENDING'))
  })
  let seen = receiver.requestCount
  // Only deliveries in flight when the receiver began to fail, not those that were ready behind
  // them.
  assert(seen <= good + 64 + 10, `${seen} requests`)
  for (const restMs of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
    advance(restMs - 1)
    await dispatchDue()
    assert.equal(receiver.requestCount, seen, `${restMs} ms`)
    advance(1)
    await receiver.waitFor(seen + 1)
    await eventually(async () => {
      assert.equal((await readWebhookState(annals, id)).lastFailureAtMs, clock())
    })
    await dispatchDue()
    seen += 1
    assert.equal(receiver.requestCount, seen, `${restMs} ms`)
  }
  receiver.respondWith({})
  advance(400_000)
  await waitForDeliveries(annals, id, good + 300, 'SUCCEEDED')
  const { failureCount, restingUntilMs, openCount } = await readWebhookState(annals, id)
  assert.deepEqual(
    { failureCount, restingUntilMs, openCount },
    { failureCount: 0, restingUntilMs: null, openCount: 0 },
  )
})

test('setting the clock back and forth loses and duplicates nothing', async () => {
  const own = await startFrozen()
  const tenant = await own.annals.createCompany()
  const gates = [Promise.withResolvers<void>()]
  await using receiver = await startReceiver(async (): Promise<Reply> => {
    await gates.at(-1)?.promise
    return {}
  })
  const id = await makeWebhook(own.annals, tenant, { url: receiver.url })
  let count = 0
  for (const stepMs of [-3_600_000, 7_200_000, -1_800_000, 50, -DAY_MS, DAY_MS]) {
    await sendEvents(own.annals, tenant.workspaceKey, 20)
    count += 20
    await receiver.waitFor(count - 20 + 8)
    // Back while some deliveries are in flight, and forward past every lease when they have ended.
    if (stepMs < 0) own.advance(stepMs)
    await own.dispatchDue()
    gates.at(-1)?.resolve()
    await waitForDeliveries(own.annals, id, count, 'SUCCEEDED')
    if (stepMs > 0) own.advance(stepMs)
    gates.push(Promise.withResolvers())
  }
  await own.dispatchDue()
  assert.equal(receiver.requestCount, count)
  assert.equal(new Set(receiver.requests.map(deliveryIdOf)).size, count)
  assert.equal((await readWebhookState(own.annals, id)).openCount, 0)
})

test('an expired lease goes to another sender, and a late result of the first changes nothing', async () => {
  const own = await startFrozen()
  const databaseUrl = own.annals.database.url
  await using _other = await startTestApp({ env, clock: own.clock, databaseUrl })
  const tenant = await own.annals.createCompany()
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  await using receiver = await startReceiver(async ({ headers }): Promise<Reply> => {
    const isFirst = headers['x-service-attempt'] === '1'
    await (isFirst ? first : second).promise
    return { status: isFirst ? 500 : 200 }
  })
  const id = await makeWebhook(own.annals, tenant, { url: receiver.url })
  await sendEvents(own.annals, tenant.workspaceKey, 1)
  await receiver.waitFor(1)
  own.advance(59_999)
  await own.dispatchDue()
  assert.equal(receiver.requestCount, 1)
  own.advance(1)
  await receiver.waitFor(2)
  first.resolve()
  // The webhook's state shows the failure, so the late report has been written.
  await eventually(async () => {
    assert.equal((await readWebhookState(own.annals, id)).failureCount, 1)
  })
  const leased = await readDelivery(own.annals, tenant, id)
  assert.equal(leased.status, 'SENDING')
  assert.deepEqual(leased.attempts, [])
  second.resolve()
  await waitForDeliveries(own.annals, id, 1, 'SUCCEEDED')
  const kept = await readDelivery(own.annals, tenant, id)
  assert.equal(kept.attempt, 2)
  assert.deepEqual(
    kept.attempts.map(({ attempt, responseStatus }) => [attempt, responseStatus]),
    [[2, 200]],
  )
  const [one, other] = receiver.requests
  assert(one && other && one.body.equals(other.body))
  assert.equal(deliveryIdOf(one), deliveryIdOf(other))
  assert.equal((await readWebhookState(own.annals, id)).openCount, 0)
})
