import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import { startSweepWorker } from '../../src/outlet/webhook/delivery/sweep-worker.ts'
import { markWebhookDeleted } from '../../src/outlet/webhook/webhook-store.ts'
import { createLogger } from '../../src/platform/logger.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { sendEvents, waitForDeliveries } from '../harness/webhook/deliveries.ts'
import { query } from '../harness/database/engine.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook, readDeliveries } from '../harness/webhook/webhooks.ts'

const DAY_MS = 86_400_000
const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const annals = stack.use(await startTestApp({ env: ANY_DESTINATION }))
const logger = createLogger('silent')
const { db } = annals.app.database

/** Sweeps once, at this time. */
async function sweepAt(atMs: number): Promise<void> {
  const { clock } = manualClock(atMs)
  await using worker = startSweepWorker({ db, clock, logger })
  await worker.runNow()
}

/** Deliveries that are not due for hours and were last changed this many days ago. */
async function insertOld(
  { workspace }: CreatedCompany,
  webhookId: WebhookId,
  { from, to, status, days }: { from: number; to: number; status: string; days: number },
): Promise<void> {
  await query(
    annals.database.connection,
    `insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_id, status, attempt,
                                   due_at, created_at, updated_at)
     select '${workspace.id}', '${webhookId}', gen_random_uuid(), n, gen_random_uuid(), '${status}', 1,
            now() + interval '20 hours', now(), now() - interval '${days} days'
       from generate_series(${from}, ${to}) as n`,
  )
}

test('a delivery is kept for 30 days after its end, then deleted', async () => {
  const tenant = await annals.createCompany()
  await using receiver = await startReceiver()
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  await sendEvents(annals, tenant.workspaceKey, 10)
  await waitForDeliveries(annals, id, 10, 'SUCCEEDED')
  await sweepAt(Date.now() + 30 * DAY_MS - 60_000)
  assert.equal((await readDeliveries(annals, id)).length, 10)
  await sweepAt(Date.now() + 30 * DAY_MS + 60_000)
  assert.equal((await readDeliveries(annals, id)).length, 0)
  await sendEvents(annals, tenant.workspaceKey, 1)
  const [next] = await waitForDeliveries(annals, id, 1, 'SUCCEEDED')
  assert.equal(next?.sequence, 11)
})

test('open deliveries are kept however old, without keeping those behind them', async () => {
  const tenant = await annals.createCompany()
  const id = await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:1/' })
  await insertOld(tenant, id, { from: 1, to: 2, status: 'RETRY_SCHEDULED', days: 60 })
  await insertOld(tenant, id, { from: 3, to: 1_500, status: 'SUCCEEDED', days: 31 })
  await insertOld(tenant, id, { from: 1_501, to: 3_000, status: 'FAILED', days: 31 })
  await insertOld(tenant, id, { from: 3_001, to: 3_010, status: 'FAILED', days: 29 })
  await sweepAt(Date.now())
  const left = await readDeliveries(annals, id)
  assert.deepEqual(
    left.map(({ sequence }) => sequence),
    [1, 2, ...Array.from({ length: 10 }, (_, index) => 3_001 + index)],
  )
})

test('a deleted webhook is removed with all its deliveries, and others stay', async () => {
  const tenant = await annals.createCompany()
  const id = await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:1/' })
  const otherId = await makeWebhook(annals, tenant, { url: 'http://127.0.0.1:1/' })
  for (const webhookId of [id, otherId]) {
    await insertOld(tenant, webhookId, { from: 1, to: 1_200, status: 'SUCCEEDED', days: 1 })
  }
  await insertOld(tenant, id, { from: 1_201, to: 1_300, status: 'RETRY_SCHEDULED', days: 1 })
  await markWebhookDeleted(db, { workspaceId: tenant.workspace.id, id }, new Date())
  await sweepAt(Date.now())
  assert.deepEqual(await readDeliveries(annals, id), [])
  assert.equal((await readDeliveries(annals, otherId)).length, 1_200)
  const rows = await query(
    annals.database.connection,
    `select id from webhook where workspace_id = '${tenant.workspace.id}'`,
  )
  assert.deepEqual(rows, [{ id: otherId }])
})
