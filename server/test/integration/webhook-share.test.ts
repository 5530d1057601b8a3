import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import { readWebhookState, sendEvents, waitForDeliveries } from '../harness/webhook/deliveries.ts'
import { startDispatcher, startSilentApp } from '../harness/webhook/dispatcher.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'

const WEBHOOKS = 4
const EVENTS = 100
/** A send takes 1 ms by the clock below, so these are 250 ms of the thread and a bit. */
const UNPACED_MAX = 100

test('deliveries of a busy company pause while another company is active, and continue afterwards', async () => {
  await using own = new AsyncDisposableStack()
  const silent = own.use(await startSilentApp())
  const busy = await silent.createCompany()
  const receiver = own.use(await startReceiver())
  const webhookIds: WebhookId[] = []
  for (let nth = 0; nth < WEBHOOKS; nth += 1) {
    webhookIds.push(await makeWebhook(silent, busy, { url: receiver.url }))
  }
  await sendEvents(silent, busy.workspaceKey, EVENTS)

  let isContended = true
  let nowMs = 0
  const afterPause: (() => void)[] = []
  const timers = {
    nowMs: () => (nowMs += 1),
    // Pauses end only when the test ends them.
    after: (_delayMs: number, run: () => void) => void afterPause.push(run),
    inNextTurn: (run: () => void) => void setImmediate(run),
  }
  const pacing = { isContended: () => isContended, timers }
  startDispatcher(own, silent, { pacing, limits: { idleFanOutMs: 50 } })

  // By then the dispatcher has served every webhook many times.
  for (const id of webhookIds) {
    await eventually(async () => {
      assert.equal((await readWebhookState(silent, id)).lastSequence, EVENTS)
    })
  }
  const pausedCount = receiver.requestCount
  assert(pausedCount > 0 && pausedCount <= UNPACED_MAX, `${pausedCount} sent`)

  isContended = false
  for (const run of afterPause.splice(0)) run()
  for (const id of webhookIds) await waitForDeliveries(silent, id, EVENTS, 'SUCCEEDED')
})
