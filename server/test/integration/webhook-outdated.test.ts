import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, test } from 'node:test'
import { systemClock } from '../../src/platform/time/clock.ts'
import { sendEvents, waitForDeliveries } from '../harness/webhook/deliveries.ts'
import { startDispatcher, startSilentApp } from '../harness/webhook/dispatcher.ts'
import { query } from '../harness/database/engine.ts'
import { eventually, eventuallyWithin } from '../harness/timing/eventually.ts'
import { type ReceivedRequest, startReceiver } from '../harness/webhook/receiver.ts'
import { makeWebhook, SECRET } from '../harness/webhook/webhooks.ts'

/** The API of this app is a different node from the dispatchers of the tests. */
const annals = await startSilentApp()
after(() => annals[Symbol.asyncDispose]())

const SENT = 8
const READY = 8
const STALE_MS_MAX = 2_000

/** A webhook whose receiver doesn't respond yet to `SENT` deliveries, with `READY` more behind them. */
async function startSlowWebhook(own: AsyncDisposableStack, { clock = systemClock } = {}) {
  const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
  const receiver = own.use(await startReceiver(() => isReleased.then(() => ({}))))
  own.defer(release)
  const tenant = await annals.createCompany()
  const id = await makeWebhook(annals, tenant, { url: receiver.url })
  const call = async (method: string, suffix = '', body?: object) => {
    const key = tenant.companyKey
    const response = await annals.call(method, `/v1/webhooks/${id}${suffix}`, { key, body })
    assert(response.status < 300, response.text)
    return response
  }
  const countFirstLease = async () => {
    const rows = await query(
      annals.database.connection,
      `select from webhook_delivery where webhook_id = '${id}' and lease =
        (select lease from webhook_delivery where webhook_id = '${id}' and sequence = 1)`,
    )
    return rows.length
  }
  /** Stores the events, and waits until the dispatcher has leased all of them. */
  const fill = async () => {
    await sendEvents(annals, tenant.workspaceKey, SENT + READY)
    startDispatcher(own, annals, { clock, sender: { timeoutMs: 120_000 } })
    await receiver.waitFor(SENT)
    await eventually(async () => assert.equal(await countFirstLease(), SENT + READY))
  }
  /** Waits until no delivery is ready with the values from before. Then the receiver responds. */
  const releaseWhenFresh = async () => {
    await eventuallyWithin(STALE_MS_MAX, async () => assert.equal(await countFirstLease(), SENT))
    assert.equal(receiver.requestCount, SENT)
    release()
  }
  return { id, receiver, call, fill, releaseWhenFresh }
}

function isSigned({ body, headers }: ReceivedRequest, secret: string): boolean {
  const hmac = createHmac('sha256', secret).update(body).digest('hex')
  return headers['x-service-signature'] === `v1=${hmac}`
}

test('sends deliveries that wait behind a slow receiver to the new URL', async () => {
  await using own = new AsyncDisposableStack()
  const fresh = own.use(await startReceiver())
  const { id, receiver, call, fill, releaseWhenFresh } = await startSlowWebhook(own)
  await fill()
  await call('PATCH', '', { url: fresh.url })
  await releaseWhenFresh()
  await waitForDeliveries(annals, id, SENT + READY, 'SUCCEEDED')
  assert.deepEqual([receiver.requestCount, fresh.requestCount], [SENT, READY])
})

test('signs deliveries that wait with the new secret after a rotation without overlap', async () => {
  await using own = new AsyncDisposableStack()
  const { id, receiver, call, fill, releaseWhenFresh } = await startSlowWebhook(own)
  await fill()
  const { json } = await call('POST', '/rotate-secret', { overlapSeconds: 0 })
  await releaseWhenFresh()
  await waitForDeliveries(annals, id, SENT + READY, 'SUCCEEDED')
  const later = receiver.requests.slice(SENT)
  assert.deepEqual([later.length, receiver.requestCount], [READY, SENT + READY])
  assert(later.every((request) => isSigned(request, json.secret)))
})

test('sends deliveries that wait with the new headers', async () => {
  await using own = new AsyncDisposableStack()
  const { id, receiver, call, fill, releaseWhenFresh } = await startSlowWebhook(own)
  await call('PATCH', '', { headers: { 'x-token': 'old' } })
  await fill()
  await call('PATCH', '', { headers: { 'x-token': 'new' } })
  await releaseWhenFresh()
  await waitForDeliveries(annals, id, SENT + READY, 'SUCCEEDED')
  const tokens = receiver.requests.map(({ headers }) => headers['x-token'])
  assert.deepEqual(tokens, [...Array(SENT).fill('old'), ...Array(READY).fill('new')])
})

test('signs deliveries that wait with the new secret alone when the overlap ends', async () => {
  await using own = new AsyncDisposableStack()
  let elapsedMs = 0
  const clock = () => systemClock() + elapsedMs
  const { id, receiver, call, fill, releaseWhenFresh } = await startSlowWebhook(own, { clock })
  const { json } = await call('POST', '/rotate-secret', { overlapSeconds: 30 })
  await fill()
  elapsedMs = 30_000
  await releaseWhenFresh()
  await waitForDeliveries(annals, id, SENT + READY, 'SUCCEEDED')
  const [first, ...later] = [receiver.requests[0], ...receiver.requests.slice(SENT)]
  assert(first && isSigned(first, SECRET))
  assert.equal(later.length, READY)
  assert(later.every((request) => isSigned(request, json.secret)))
})

for (const { end, method, suffix } of [
  { end: 'disabled', method: 'POST', suffix: '/disable' },
  { end: 'deleted', method: 'DELETE', suffix: '' },
]) {
  test(`sends nothing that waits behind a slow receiver once the webhook is ${end}`, async () => {
    await using own = new AsyncDisposableStack()
    const { id, receiver, call, fill, releaseWhenFresh } = await startSlowWebhook(own)
    await fill()
    await call(method, suffix)
    await releaseWhenFresh()
    const rows = await waitForDeliveries(annals, id, SENT + READY, 'SUCCEEDED', 'FAILED')
    assert.equal(rows.filter(({ status }) => status === 'SUCCEEDED').length, SENT)
    assert.equal(receiver.requestCount, SENT)
  })
}
