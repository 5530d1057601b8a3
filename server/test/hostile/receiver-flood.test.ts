import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { WebhookId } from '../../src/outlet/webhook/delivery/delivery.ts'
import { countBy, sendEvents } from '../harness/webhook/deliveries.ts'
import { eventually } from '../harness/timing/eventually.ts'
import { FloodThread } from '../harness/webhook/flood-thread.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { ANY_DESTINATION, makeWebhook, readDeliveries } from '../harness/webhook/webhooks.ts'

const WEBHOOKS_PER_FLOOD = 5
const EVENTS = process.env.FAULT_SECONDS === undefined ? 2 : 4
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
const FLOODS = [
  { first: '', piece: 'HTTP/1.1 103 Early Hints\r\n\r\n' },
  { first: CHUNKED, piece: `1;${'a'.repeat(65_000)}\r\nx\r\n` },
  { first: `${CHUNKED}0\r\n`, piece: 'a:\r\n' },
]
/** All in CPU time of the thread, which doesn't depend on what else the machine does. */
const ATTEMPT_MS_MAX = 50
const OTHER_EVENT_MS_MAX = 500
const STOP_MS_MAX = 2_000

test('receivers that flood the service delay neither events of another company nor the shutdown', async () => {
  await using stack = new AsyncDisposableStack()
  const annals = await startTestApp({ env: ANY_DESTINATION })
  stack.defer(() => annals[Symbol.asyncDispose]())
  const [flooded, other] = [await annals.createCompany(), await annals.createCompany()]
  const webhookIds: WebhookId[] = []
  for (const flood of FLOODS) {
    const { url } = stack.use(await FloodThread.start(flood))
    for (let nth = 0; nth < WEBHOOKS_PER_FLOOD; nth += 1) {
      webhookIds.push(await makeWebhook(annals, flooded, { url: `${url}/${nth}` }))
    }
  }
  const readAll = async () => {
    const rows = await Promise.all(webhookIds.map((id) => readDeliveries(annals, id)))
    return rows.flat()
  }

  const otherMs: number[] = []
  const floodMs = await cpuMs(async () => {
    await sendEvents(annals, flooded.workspaceKey, EVENTS)
    for (let nth = 0; nth < 5; nth += 1) {
      otherMs.push(await cpuMs(() => sendEvents(annals, other.workspaceKey, 1)))
    }
    await eventually(
      async () => {
        const statuses = countBy(await readAll(), ({ status }) => status)
        const { SUCCEEDED = 0, RETRY_SCHEDULED = 0 } = statuses
        assert.equal(
          SUCCEEDED + RETRY_SCHEDULED,
          webhookIds.length * EVENTS,
          JSON.stringify(statuses),
        )
      },
      { timeoutMs: 60_000 },
    )
  })
  const deliveries = await readAll()
  const attempts = deliveries.reduce((sum, { attempt }) => sum + attempt, 0)
  const medianMs = otherMs.toSorted((a, b) => a - b)[otherMs.length >> 1] ?? Infinity
  assert(floodMs < attempts * ATTEMPT_MS_MAX, `${floodMs} ms for ${attempts} attempts`)
  assert(medianMs < OTHER_EVENT_MS_MAX, `${otherMs.join(', ')} ms for events of the other company`)

  await sendEvents(annals, flooded.workspaceKey, EVENTS)
  const stopMs = await cpuMs(() => annals.app[Symbol.asyncDispose]())
  assert(stopMs < STOP_MS_MAX, `${stopMs} ms for the shutdown`)
})

/** The CPU time of this thread until the work is done. */
async function cpuMs(work: () => PromiseLike<unknown>): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return Math.round((user + system) / 1_000)
}
