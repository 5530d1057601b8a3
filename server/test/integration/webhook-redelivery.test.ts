import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import {
  redeliverWindow,
  type WindowResult,
} from '../../src/outlet/webhook/delivery/redeliver-window.ts'
import { findWebhook, lockWebhook } from '../../src/outlet/webhook/webhook-store.ts'
import { monotonicClock } from '../../src/platform/time/clock.ts'
import { assertId } from '../../src/platform/id.ts'
import type { CreatedCompany } from '../../src/tenancy/create-company.ts'
import { countLockWaits, withCompanyLocked } from '../harness/database/company-lock.ts'
import { asOwner } from '../harness/dashboard/console.ts'
import { query } from '../harness/database/engine.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { hang, startReceiver } from '../harness/webhook/receiver.ts'
import { type TestResponse, startTestApp } from '../harness/app/start-app.ts'

/** Set while a test stores events at chosen times. */
let setMs: number | null = null
const annals = await startTestApp({
  clock: () => setMs ?? Date.now(),
  monotonic: monotonicClock,
  env: { ANNALS_WEBHOOK_DESTINATIONS: 'any', ANNALS_RATE_LIMITS: 'off' },
})
after(() => annals[Symbol.asyncDispose]())

/** Nothing listens there, and nothing leaves this machine. */
const URL_HERE = 'http://127.0.0.1:9/hook'
const DAY_MS = 86_400_000

type Record = TestResponse['json']

/** A webhook in a new company, and functions that read its state. */
async function openWebhook(fields: object = {}) {
  const company = await annals.createCompany()
  const key = company.companyKey
  const body = { url: URL_HERE, ...fields }
  const path = `/v1/workspaces/${company.workspace.id}/webhooks`
  const { json } = await annals.call('POST', path, { key, body })
  const webhook = `/v1/webhooks/${json.id}`
  const get = (suffix: string) => annals.call('GET', `${webhook}${suffix}`, { key })
  const post = (suffix: string, options?: unknown) =>
    annals.call('POST', `${webhook}${suffix}`, { key, body: options })
  return { company, id: String(json.id), get, post }
}

type Opened = Awaited<ReturnType<typeof openWebhook>>

async function sendEvents({ workspaceKey: key }: CreatedCompany, count: number): Promise<string[]> {
  const events = Array.from({ length: count }, () => ({ category: 'c', action: 'a' }))
  const { json } = await annals.call('POST', '/v1/events/batch', { key, body: { events } })
  return json.results.map(({ id }: Record) => id)
}

const deliveriesOf = async ({ get }: Opened, query = ''): Promise<Record[]> =>
  (await get(`/deliveries?limit=200${query}`)).json.data

const around = (fromMs: number, toMs: number) => ({
  from: new Date(fromMs).toISOString(),
  to: new Date(toMs).toISOString(),
})

/** Waits until all deliveries have ended, successfully or not. */
async function settled(opened: Opened, count: number, status: string): Promise<Record[]> {
  return await eventually(async () => {
    const deliveries = await deliveriesOf(opened)
    assert.deepEqual(
      deliveries.map((delivery) => delivery.status),
      Array.from({ length: count }, () => status),
    )
    return deliveries
  })
}

test('a webhook that is disabled while a resend waits for its turn gets nothing', async () => {
  await using receiver = await startReceiver()
  const opened = await openWebhook({ url: receiver.url })
  const { company, id, post } = opened
  await post('/test')
  const [delivery] = await settled(opened, 1, 'SUCCEEDED')
  const window = around(Date.now() - 60_000, Date.now() + 60_000)
  for (const resend of [
    () => post(`/deliveries/${delivery.id}/redeliver`),
    () => post('/redeliver', window),
  ]) {
    await post('/enable')
    const [call] = await withCompanyLocked(annals, company.company.id, async (trx) => {
      const running = resend()
      await eventually(async () => assert.equal(await countLockWaits(annals), 1))
      await sql`update webhook set status = 'DISABLED' where id = ${id}`.execute(trx)
      return [running]
    })
    const { status, json } = await call
    assert.deepEqual([status, json.error], [409, 'The webhook is disabled. Enable it first.'])
  }
  assert.equal(receiver.requestCount, 1)
})

test('a resend and the end of an attempt do not deadlock', async () => {
  await using receiver = await startReceiver()
  const opened = await openWebhook({ url: receiver.url })
  await opened.post('/test')
  const [delivery] = await settled(opened, 1, 'SUCCEEDED')
  // In the order of `settleAttempts`: first the delivery, then its webhook.
  const late = await asOwner(annals, (owner) =>
    owner.transaction().execute(async (trx) => {
      await sql`select from webhook_delivery where id = ${delivery.id} for update`.execute(trx)
      const call = opened.post(`/deliveries/${delivery.id}/redeliver`)
      await eventually(async () => assert.equal(await countLockWaits(annals), 1))
      await sql`update webhook set failure_count = 0 where id = ${opened.id}`.execute(trx)
      return [call]
    }),
  )
  const [response] = await Promise.all(late)
  assert.equal(response?.status, 202, response?.text)
  await receiver.waitFor(2)
})

test('a test is delivered, marked as a test, and listed with its attempt', async () => {
  await using receiver = await startReceiver({ body: 'thanks' })
  const opened = await openWebhook({ url: receiver.url })
  const { status, json } = await opened.post('/test')
  assert.deepEqual([status, json.sequence], [202, 1])
  const [request] = await receiver.waitFor(1)
  assert.equal(request?.headers['x-service-test'], 'true')
  const [delivery] = await settled(opened, 1, 'SUCCEEDED')
  const { createdAt, updatedAt, durationMs, ...fields } = delivery
  assert.deepEqual(fields, {
    id: json.deliveryId,
    webhookId: opened.id,
    eventId: json.deliveryId,
    eventSeq: null,
    status: 'SUCCEEDED',
    attempt: 1,
    sequence: 1,
    url: receiver.url,
    responseStatus: 200,
    errorClass: null,
    failureReason: null,
    isTest: true,
    nextAttemptAt: null,
  })
  const single = await opened.get(`/deliveries/${json.deliveryId.toUpperCase()}`)
  const { attempts, ...same } = single.json
  assert.deepEqual(same, delivery)
  assert.equal(attempts.length, 1)
  assert.deepEqual(
    { ...attempts[0], startedAt: null, durationMs: null },
    {
      attempt: 1,
      url: receiver.url,
      startedAt: null,
      durationMs: null,
      responseStatus: 200,
      errorClass: null,
      message: null,
      excerpt: 'thanks',
    },
  )
  assert(createdAt <= updatedAt && durationMs >= 0)
})

test('deliveries are paged newest first, or forward from a sequence number, each once', async () => {
  await using receiver = await startReceiver()
  const opened = await openWebhook({ url: receiver.url })
  const ids = await sendEvents(opened.company, 7)
  await settled(opened, 7, 'SUCCEEDED')
  const walk = async (query: string) => {
    const seen: Record[] = []
    let cursor = ''
    do {
      const { json } = await opened.get(`/deliveries?limit=2${query}${cursor}`)
      seen.push(...json.data)
      cursor = json.nextCursor === null ? '' : `&cursor=${encodeURIComponent(json.nextCursor)}`
    } while (cursor !== '')
    return seen.map(({ sequence }) => sequence)
  }
  assert.deepEqual(await walk(''), [7, 6, 5, 4, 3, 2, 1])
  assert.deepEqual(await walk('&status=SUCCEEDED'), [7, 6, 5, 4, 3, 2, 1])
  assert.deepEqual(await walk('&status=FAILED'), [])
  assert.deepEqual(await walk('&afterSequence=0'), [1, 2, 3, 4, 5, 6, 7])
  assert.deepEqual(await walk('&afterSequence=3&status=SUCCEEDED'), [4, 5, 6, 7])
  assert.deepEqual(await walk('&afterSequence=7'), [])
  const ascending = await deliveriesOf(opened, '&afterSequence=0')
  assert.deepEqual(
    ascending.map(({ eventId }) => eventId),
    ids,
    'in chain order',
  )
})

test('a cursor belongs to its company, webhook, status and order', async () => {
  const opened = await openWebhook()
  for (const suffix of ['/test', '/test', '/test']) await opened.post(suffix)
  const cursorOf = async (query: string) =>
    encodeURIComponent((await opened.get(`/deliveries?limit=1${query}`)).json.nextCursor)
  const plain = await cursorOf('')
  const ascending = await cursorOf('&afterSequence=0')
  const other = await openWebhook()
  const refusals: [Opened, string][] = [
    [other, `cursor=${plain}`],
    [opened, `cursor=${plain}&status=FAILED`],
    [opened, `cursor=${plain}&afterSequence=0`],
    [opened, `cursor=${ascending}`],
    [opened, `cursor=${ascending}&afterSequence=1`],
    [opened, `cursor=${plain.slice(0, -1)}`],
    [opened, 'cursor='],
  ]
  for (const [webhook, query] of refusals) {
    const { status, json } = await webhook.get(`/deliveries?${query}`)
    assert.deepEqual([status, json.code], [400, 'invalid_cursor'], query)
  }
  assert.equal((await opened.get(`/deliveries?limit=2&cursor=${plain}`)).json.data.length, 2)
  for (const query of ['limit=0', 'limit=201', 'status=LOST', 'afterSequence=-1', 'before=1']) {
    assert.equal((await opened.get(`/deliveries?${query}`)).json.code, 'invalid_request', query)
  }
})

test('a delivery that succeeded or waits can be redelivered with its id, but not while it is sent', async () => {
  await using receiver = await startReceiver()
  const opened = await openWebhook({ url: receiver.url })
  await sendEvents(opened.company, 1)
  const [{ id }] = await settled(opened, 1, 'SUCCEEDED')
  const again = await opened.post(`/deliveries/${id}/redeliver`)
  assert.deepEqual(
    [again.status, again.json.id, again.json.sequence, again.json.status],
    [202, id, 1, 'PENDING'],
  )
  const [first, second] = await receiver.waitFor(2)
  assert.equal(second?.headers['x-service-delivery-id'], first?.headers['x-service-delivery-id'])
  assert.equal(second?.headers['x-service-attempt'], '2')
  assert.deepEqual(second?.body, first?.body)
  receiver.respondWith({ status: 500 })
  await settled(opened, 1, 'SUCCEEDED')
  await opened.post(`/deliveries/${id}/redeliver`)
  await settled(opened, 1, 'RETRY_SCHEDULED')
  receiver.respondWith(hang)
  assert.equal((await opened.post(`/deliveries/${id}/redeliver`)).status, 202)
  await receiver.waitFor(4)
  const busy = await opened.post(`/deliveries/${id}/redeliver`)
  assert.deepEqual([busy.status, busy.json.code], [409, 'conflict'])
  await opened.post('/disable')
  const disabled = await opened.post(`/deliveries/${id}/redeliver`)
  assert.deepEqual([disabled.status, disabled.json.code], [409, 'conflict'])
  assert.match(disabled.json.error, /disabled/)
  assert.equal((await opened.post('/test')).json.code, 'conflict')
})

test('a window sends failed and missed events, each once, in any number of calls', async () => {
  await using receiver = await startReceiver({ status: 500 })
  const opened = await openWebhook({ url: receiver.url })
  const early = await sendEvents(opened.company, 3)
  await receiver.waitFor(3)
  await opened.post('/disable')
  const missed = await sendEvents(opened.company, 4)
  await settled(opened, 3, 'FAILED')
  const window = around(Date.now() - 60_000, Date.now() + 60_000)
  const refused = await opened.post('/redeliver', window)
  assert.deepEqual([refused.status, refused.json.code], [409, 'conflict'])
  await opened.post('/enable')
  receiver.respondWith({})
  const { status, json } = await opened.post('/redeliver', window)
  assert.equal(status, 202)
  assert.deepEqual(json, { redelivered: 3, made: 4, isComplete: true, continueFrom: null })
  await receiver.waitFor(10)
  const deliveries = await settled(opened, 7, 'SUCCEEDED')
  assert.deepEqual(
    deliveries.map(({ sequence }) => sequence),
    [7, 6, 5, 4, 3, 2, 1],
  )
  assert.deepEqual(
    deliveries.map(({ eventId }) => String(eventId)).toSorted(),
    [...early, ...missed].toSorted(),
  )
  const twice = await opened.post('/redeliver', window)
  const nothing = { redelivered: 0, made: 0, isComplete: true, continueFrom: null }
  assert.deepEqual(twice.json, nothing)
})

test('redelivering a window of an active webhook duplicates and loses nothing', async () => {
  await using receiver = await startReceiver()
  const opened = await openWebhook({ url: receiver.url })
  const window = around(Date.now() - 60_000, Date.now() + 60_000)
  const rounds = Array.from({ length: 20 }, async () => {
    const [ids, response] = await Promise.all([
      sendEvents(opened.company, 10),
      opened.post('/redeliver', window),
    ])
    assert.equal(response.status, 202, response.text)
    return ids
  })
  const ids = (await Promise.all(rounds)).flat()
  const deliveries = await settled(opened, 200, 'SUCCEEDED')
  assert.deepEqual(
    deliveries.map(({ sequence }) => sequence),
    Array.from({ length: 200 }, (_, index) => 200 - index),
  )
  assert.deepEqual(deliveries.map(({ eventId }) => String(eventId)).toSorted(), ids.toSorted())
  const nothing = { redelivered: 0, made: 0, isComplete: true, continueFrom: null }
  assert.deepEqual((await opened.post('/redeliver', window)).json, nothing)
})

test('a window is by time of receipt, for the project of the webhook, and starts no earlier than the webhook', async () => {
  const company = await annals.createCompany()
  const key = company.companyKey
  await sendEvents(company, 2)
  const sentAtMs = Date.now()
  const path = `/v1/workspaces/${company.workspace.id}/webhooks`
  // An event of the same millisecond would count as the webhook's.
  await eventually(() => assert(Date.now() > sentAtMs))
  const { json } = await annals.call('POST', path, {
    key,
    body: { url: URL_HERE, projectId: company.project.id },
  })
  const post = (suffix: string, body?: unknown) =>
    annals.call('POST', `/v1/webhooks/${json.id}${suffix}`, { key, body })
  await post('/disable')
  const inProject = { category: 'c', action: 'a', projectId: company.project.id }
  const body = { ...inProject, timestamp: '2020-01-01T00:00:00Z' }
  await annals.call('POST', '/v1/events', { key: company.workspaceKey, body })
  await sendEvents(company, 2)
  await post('/enable')
  const nowMs = Date.now()
  const past = await post('/redeliver', around(nowMs - 2 * DAY_MS, nowMs - DAY_MS))
  assert.deepEqual([past.json.redelivered, past.json.made], [0, 0])
  const all = await post('/redeliver', around(nowMs - DAY_MS, nowMs + DAY_MS))
  assert.deepEqual([all.json.redelivered, all.json.made], [0, 1])
})

test('rejects a window that is reversed or older than deliveries are kept', async () => {
  const opened = await openWebhook()
  const nowMs = Date.now()
  for (const window of [
    around(nowMs, nowMs),
    around(nowMs, nowMs - 1),
    around(nowMs - 31 * DAY_MS, nowMs),
    { from: 'yesterday', to: 'today' },
    { from: around(nowMs - 1, nowMs).from },
    { ...around(nowMs - 1, nowMs), limit: 1 },
  ]) {
    const { status, json } = await opened.post('/redeliver', window)
    assert.deepEqual([status, json.code], [400, 'invalid_request'], JSON.stringify(window))
  }
})

test('a call sends at most 10,000 and returns where to continue', async () => {
  const opened = await openWebhook()
  await opened.post('/disable')
  for (let sent = 0; sent < 10_500; sent += 500) await sendEvents(opened.company, 500)
  await opened.post('/enable')
  const nowMs = Date.now()
  const first = await opened.post('/redeliver', around(nowMs - DAY_MS, nowMs + DAY_MS))
  assert.deepEqual([first.json.made, first.json.isComplete], [10_000, false])
  const rest = { from: first.json.continueFrom, to: new Date(nowMs + DAY_MS).toISOString() }
  const second = await opened.post('/redeliver', rest)
  assert.deepEqual([second.json.made, second.json.isComplete], [500, true])
  const [last] = await deliveriesOf(opened)
  assert.equal(last.sequence, 10_500)
  await opened.post('/disable')
})

/** A webhook that has missed six events. The nth event was received at the nth of these times. */
async function missSix(minutes: readonly number[]) {
  const opened = await openWebhook()
  await opened.post('/disable')
  const firstMs = Date.now() + 60_000
  for (const minute of minutes) {
    setMs = firstMs + minute * 60_000
    await sendEvents(opened.company, 1)
  }
  setMs = null
  await opened.post('/enable')
  return { ...opened, fromMs: firstMs - 1, toMs: firstMs + DAY_MS }
}

type Missed = Awaited<ReturnType<typeof missSix>>

/** A call with a limit of two events. */
async function redeliverTwo({ company, id, fromMs, toMs }: Missed): Promise<WindowResult> {
  const { db } = annals.app.database
  const target = { companyId: company.company.id, webhookId: assertId<'webhook'>(id) }
  const webhook = await findWebhook(db, target)
  assert(webhook)
  const limits = { seqsPerPage: 1, pagesMax: 2 }
  return await redeliverWindow(db, webhook, { fromMs, toMs }, Date.now, limits)
}

/** Repeats the call from `continueFrom` until the window is done. */
async function redeliverTwoByTwo(missed: Missed): Promise<number> {
  let made = 0
  let fromMs: number | null = missed.fromMs
  for (let calls = 1; fromMs !== null; calls += 1) {
    assert(calls <= 6, 'the calls do not end')
    const result: WindowResult = await redeliverTwo({ ...missed, fromMs })
    made += result.made
    fromMs = result.continueFrom?.getTime() ?? null
  }
  return made
}

test('continuing a window ends even if its events were received in the same millisecond', async () => {
  assert.equal(await redeliverTwoByTwo(await missSix([0, 0, 0, 0, 0, 0])), 6)
})

test('continuing a window sends every event even if the clock was set back between them', async () => {
  assert.equal(await redeliverTwoByTwo(await missSix([3, 4, 5, 3, 4, 5])), 6)
})

test('a window contains events during which the clock was far back', async () => {
  assert.equal(await redeliverTwoByTwo(await missSix([0, 1, -300, -300, 2, 3])), 6)
})

test('a window that ends now contains every event since the clock ran ahead', async () => {
  const missed = await missSix([0, 1, 300, 300, 2, 3])
  const toMs = missed.fromMs + 10 * 60_000
  // Including the two that the wrong clock dated after the end of the window.
  assert.equal(await redeliverTwoByTwo({ ...missed, toMs }), 6)
})

test('continuing a window skips events that were archived during the call', async () => {
  const missed = await missSix([0, 1, 2, 3, 4, 5])
  const { connection } = annals.database
  const workspaceId = missed.company.workspace.id
  const { pending } = await annals.app.database.db.transaction().execute(async (trx) => {
    await lockWebhook(trx, { workspaceId, id: assertId(missed.id) })
    const call = redeliverTwo(missed)
    await eventually(async () => {
      const waiting = `select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%missing as%'`
      assert.equal((await query(connection, waiting)).length, 1)
    })
    await query(connection, `delete from event where workspace_id = '${workspaceId}' and seq <= 4`)
    return { pending: call }
  })
  const { continueFrom } = await pending
  assert.equal(continueFrom?.getTime(), missed.fromMs + 1 + 4 * 60_000)
})
