import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createServiceAudit } from '../../src/intake/audit-entry.ts'
import { startArchiveWorker } from '../../src/outlet/archive/archive-worker.ts'
import {
  listPlanGauges,
  listWebhookGauges,
  listWorkerLags,
  readStorageGauges,
} from '../../src/outlet/telemetry/telemetry-store.ts'
import { newId } from '../../src/platform/id.ts'
import { createLogger } from '../../src/platform/logger.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { query } from '../harness/database/engine.ts'
import { measureReads } from '../harness/database/explain.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'
import { METRICS_ENV, scrapeMetrics as scrapeShared, valueOf } from '../harness/telemetry/scrape.ts'
import { eventually, within } from '../harness/timing/eventually.ts'
import { sendEvents } from '../harness/webhook/deliveries.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'

/** Less than the 30 s between two reads, and more than that, however slow the last one was. */
const BEFORE_NEXT_READ_MS = 20_000
const AFTER_NEXT_READ_MS = 3_600_000
const RENDER_MS = 1_000
/** A scrape waits a second for the database. The rest is for a busy machine. */
const SCRAPE_MS_MAX = 10_000
/** Fewer than the connections that the metrics port accepts. */
const SCRAPERS = 10
/** Only this statement of the service contains it, once per read. */
const READ = 'pg_database_size'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const database = stack.use(await cloneDatabase())
const proxy = stack.use(await PgProxy.listen(database.connection))
let skippedMs = 0
/** An API node has no workers and sends no webhooks, so every backlog stays as the test makes it. */
const annals = stack.use(
  await startTestApp({
    databaseUrl: proxy.urlTo(database.connection),
    role: 'api',
    env: METRICS_ENV,
    clock: () => Date.now(),
    monotonic: () => performance.now() + skippedMs,
  }),
)
const { connection } = database

/** Scrapes after the time for which scrapes share a rendering. */
async function scrapeMetrics(app: typeof annals) {
  skippedMs += RENDER_MS
  return await scrapeShared(app)
}

/** Scrapes after the time for the next read. Waits until it is complete. */
async function scrapeFresh() {
  skippedMs += AFTER_NEXT_READ_MS
  const countReads = proxy.countSent(READ)
  return await eventually(async () => {
    const scrape = await scrapeMetrics(annals)
    assert.equal(countReads(), 1)
    return scrape
  })
}

async function readNumber(text: string): Promise<number> {
  const [row] = await query(connection, text)
  return Number(row?.['number'])
}

test('any number of scrapers reads the gauges from the database once per 30 seconds', async () => {
  await scrapeFresh()
  const countReads = proxy.countSent(READ)
  const scrapeAll = () => Promise.all(Array.from({ length: SCRAPERS }, () => scrapeShared(annals)))
  skippedMs += BEFORE_NEXT_READ_MS
  await scrapeAll()
  assert.equal(countReads(), 0)
  skippedMs += AFTER_NEXT_READ_MS
  await scrapeAll()
  await eventually(() => assert.equal(countReads(), 1))
})

test('a slow read is repeated after twenty times as long', async () => {
  const countReads = proxy.countSent(READ)
  skippedMs += AFTER_NEXT_READ_MS
  proxy.mode = 'stall'
  try {
    await scrapeMetrics(annals)
    skippedMs += 10_000
  } finally {
    proxy.mode = 'pass'
  }
  await eventually(() => assert.equal(countReads(), 1))
  skippedMs += 100_000
  // The first scrape waits for the read if it is still running.
  for (let scrapes = 0; scrapes < 2; scrapes += 1) await scrapeMetrics(annals)
  assert.equal(countReads(), 1)
  skippedMs += AFTER_NEXT_READ_MS
  await eventually(async () => {
    await scrapeMetrics(annals)
    assert.equal(countReads(), 2)
  })
})

test('the lag of a worker is what it has not processed, and the age of the oldest such event', async () => {
  const tenant = await annals.createCompany()
  await sendEvents(annals, tenant.workspaceKey, 5)
  await query(connection, `update event set received_at = now() - interval '1 hour' where seq = 1`)
  const events = await readNumber('select sum(seq) as number from chain_head')
  assert(events >= 5)
  const scrape = await scrapeFresh()
  for (const worker of ['rollup', 'event_type', 'signer']) {
    assert.equal(valueOf(scrape, 'annals_worker_lag_events', { worker }), events, worker)
    const seconds = valueOf(scrape, 'annals_worker_lag_seconds', { worker }) ?? 0
    assert(seconds >= 3_600 && seconds < 7_200, `${worker}: ${seconds}`)
  }
  // It waits until a workspace has enough events for a block.
  assert.equal(valueOf(scrape, 'annals_worker_lag_events', { worker: 'search' }), 0)
  assert.equal(valueOf(scrape, 'annals_worker_lag_seconds', { worker: 'search' }), 0)
  await query(
    connection,
    `insert into rollup_head (workspace_id, floor_seq, seen_seq, day_seq, advanced_at)
     select workspace_id, 0, seq, seq, now() from chain_head`,
  )
  const caughtUp = await scrapeFresh()
  assert.equal(valueOf(caughtUp, 'annals_worker_lag_events', { worker: 'rollup' }), 0)
  assert.equal(valueOf(caughtUp, 'annals_worker_lag_seconds', { worker: 'rollup' }), 0)
})

test('webhooks and their backlog are counted by state', async () => {
  const tenant = await annals.createCompany()
  const url = 'https://receiver.example/'
  await makeWebhook(annals, tenant, { url })
  const [failing, resting, disabled] = [
    await makeWebhook(annals, tenant, { url }),
    await makeWebhook(annals, tenant, { url }),
    await makeWebhook(annals, tenant, { url }),
  ]
  await sendEvents(annals, tenant.workspaceKey, 3)
  const change = (id: string, set: string) =>
    query(connection, `update webhook set ${set} where id = '${id}'`)
  await change(failing, 'failing_since = now()')
  await change(resting, `failing_since = now(), resting_until = now() + interval '1 hour'`)
  await change(disabled, `status = 'DISABLED'`)
  await query(
    connection,
    `insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_id, status, attempt,
                                   due_at, created_at, updated_at)
     values ('${tenant.workspace.id}', '${failing}', '${newId()}', 1, '${newId()}', 'RETRY_SCHEDULED', 1,
             now() - interval '10 minutes', now(), now())`,
  )
  await change(failing, 'open_count = 1')
  const scrape = await scrapeFresh()
  for (const state of ['healthy', 'failing', 'resting', 'disabled']) {
    assert.equal(valueOf(scrape, 'annals_webhook_count', { state }), 1, state)
    const unread = valueOf(scrape, 'annals_webhook_unread_events', { state })
    assert.equal(unread, state === 'disabled' ? 0 : 3, state)
    const open = valueOf(scrape, 'annals_delivery_open_count', { state })
    assert.equal(open, state === 'failing' ? 1 : 0, state)
    const late = valueOf(scrape, 'annals_delivery_late_seconds', { state }) ?? -1
    assert(state === 'failing' ? late >= 600 && late < 3_600 : late === 0, `${state}: ${late}`)
  }
  await query(connection, `update webhook set deleted_at = now()`)
  assert.equal(valueOf(await scrapeFresh(), 'annals_webhook_count', { state: 'healthy' }), 0)
})

test('the use of a plan is the share of its bytes per day that the largest company has stored', async () => {
  const [small, large] = [
    await annals.createCompany({ plan: 'STARTER' }),
    await annals.createCompany({ plan: 'STARTER' }),
  ]
  for (const [{ workspace }, bytes] of [
    [small, 1e9],
    [large, 16e9],
  ] as const) {
    await query(
      connection,
      `insert into event_day (workspace_id, day, events, bytes)
       values ('${workspace.id}', (now() at time zone 'UTC')::date, 1, ${bytes}),
              ('${workspace.id}', (now() at time zone 'UTC')::date - 1, 1, 30000000000)`,
    )
  }
  const scrape = await scrapeFresh()
  assert.equal(valueOf(scrape, 'annals_company_count', { plan: 'STARTER' }), 2)
  assert.equal(valueOf(scrape, 'annals_plan_use_ratio', { plan: 'STARTER' }), 0.5)
  assert.equal(valueOf(scrape, 'annals_plan_use_ratio', { plan: 'FREE' }), 0)
  assert.equal(valueOf(scrape, 'annals_plan_use_ratio', { plan: 'ENTERPRISE' }), null)
})

test('gauges that can’t be read are left out until they can, and the others stay', async () => {
  const failed = async () =>
    valueOf(await scrapeMetrics(annals), 'annals_gauge_fail_total', { group: 'webhooks' })
  await scrapeFresh()
  assert.equal(await failed(), 0)
  await query(connection, 'alter table webhook rename to webhook_elsewhere')
  try {
    const scrape = await scrapeFresh()
    assert.equal(valueOf(scrape, 'annals_webhook_count', { state: 'healthy' }), null)
    assert.equal(valueOf(scrape, 'annals_delivery_open_count', { state: 'healthy' }), null)
    assert.notEqual(valueOf(scrape, 'annals_database_size_bytes'), null)
    assert.equal(await failed(), 1)
  } finally {
    await query(connection, 'alter table webhook_elsewhere rename to webhook')
  }
  assert.notEqual(valueOf(await scrapeFresh(), 'annals_webhook_count', { state: 'healthy' }), null)
})

test('a scrape doesn’t wait for a database that doesn’t respond', async () => {
  const before = await scrapeFresh()
  proxy.mode = 'stall'
  try {
    skippedMs += AFTER_NEXT_READ_MS
    const scrape = await within(SCRAPE_MS_MAX, scrapeMetrics(annals))
    // The values of the last read that completed.
    const name = 'annals_database_size_bytes'
    assert.equal(valueOf(scrape, name), valueOf(before, name))
    assert.equal(valueOf(scrape, 'annals_event_wait_count'), 0)
  } finally {
    proxy.mode = 'pass'
  }
})

test('a node reports that its writer is down, until the database accepts writes again', async () => {
  const assertDown = (down: number) =>
    eventually(async () => {
      assert.equal(valueOf(await scrapeMetrics(annals), 'annals_writer_down_count'), down)
    })
  await assertDown(0)
  proxy.mode = 'refuse'
  try {
    await assertDown(1)
  } finally {
    proxy.mode = 'pass'
  }
  await assertDown(0)
})

test('a run of the archiver that leaves nothing behind is complete', async () => {
  const clock = () => Date.now()
  const { archive, metrics } = annals.app
  const { db } = annals.app.database
  const logger = createLogger('silent')
  const cutSignal = new AbortController().signal
  const audit = createServiceAudit(clock)
  const parts = { connection, db, audit, archive, clock, logger, cutSignal, metrics }
  await using worker = startArchiveWorker(parts)
  const name = 'annals_archive_complete_timestamp_seconds'
  assert.equal(valueOf(await scrapeMetrics(annals), name), null)
  const beforeMs = Date.now()
  await worker.runNow()
  const scrape = await scrapeMetrics(annals)
  assert.equal(valueOf(scrape, 'annals_archive_run_total', { result: 'complete' }), 1)
  assert.equal(valueOf(scrape, 'annals_archive_run_total', { result: 'failed' }), 0)
  assert((valueOf(scrape, name) ?? 0) * 1_000 >= beforeMs)
  assert.equal(valueOf(scrape, 'annals_archive_hold_events'), 0)
})

test('events are counted by outcome, and refused requests by code', async () => {
  const tenant = await annals.createCompany()
  const before = await scrapeMetrics(annals)
  const body = { category: 'auth', action: 'login', idempotencyKey: 'one' }
  const key = tenant.workspaceKey
  for (const status of [201, 200]) {
    assert.equal((await annals.call('POST', '/v1/events', { key, body })).status, status)
  }
  assert.equal((await annals.call('POST', '/v1/events', { key, body: {} })).status, 400)
  assert.equal((await annals.call('GET', '/v1/events?limit=0', { key })).status, 400)
  const later = await scrapeMetrics(annals)
  const grown = (name: string, labels: Record<string, string>) =>
    (valueOf(later, name, labels) ?? 0) - (valueOf(before, name, labels) ?? 0)
  assert.equal(grown('annals_event_commit_total', { outcome: 'stored' }), 1)
  assert.equal(grown('annals_event_commit_total', { outcome: 'replayed' }), 1)
  assert.equal(grown('annals_event_refuse_total', { code: 'invalid_request' }), 1)
})

test('reading the gauges costs the same however many events and deliveries there are', async () => {
  const tenant = await annals.createCompany()
  const webhookId = await makeWebhook(annals, tenant, { url: 'https://receiver.example/' })
  await sendEvents(annals, tenant.workspaceKey, 20)
  const readAll = async (table: string) => {
    const { pool } = annals.app.database
    return await measureReads(pool, table, async (db) => {
      await listWebhookGauges(db)
      await listWorkerLags(db, { isSigning: true })
      await readStorageGauges(db)
      await listPlanGauges(db)
    })
  }
  await query(
    connection,
    `insert into webhook_delivery (workspace_id, webhook_id, id, sequence, event_id, status, attempt,
                                   due_at, created_at, updated_at)
     select '${tenant.workspace.id}', '${webhookId}', gen_random_uuid(), n, gen_random_uuid(),
            case when n % 2 = 0 then 'PENDING' else 'SUCCEEDED' end, 1, now(), now(), now()
       from generate_series(1, 5000) as n`,
  )
  await query(connection, `update webhook set open_count = 2500 where id = '${webhookId}'`)
  await query(
    connection,
    `insert into event_day (workspace_id, day, events, bytes)
     select '${tenant.workspace.id}', date '2000-01-01' + n, 1, 1 from generate_series(1, 3000) as n`,
  )
  await query(connection, 'analyze')
  const deliveries = await readAll('webhook_delivery')
  assert(deliveries.rows <= 10, JSON.stringify(deliveries))
  const days = await readAll('event_day')
  assert(days.rows <= 10, JSON.stringify(days))
  const chains = await readNumber('select count(*) as number from chain_head')
  const events = await readAll('event')
  // One per worker and chain.
  assert(events.rows <= 4 * chains, JSON.stringify({ ...events, chains }))
})
