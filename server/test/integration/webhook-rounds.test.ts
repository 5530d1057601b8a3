import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { randomFraction } from '../../src/platform/id.ts'
import { eventIdOf, sendEvents, waitForDeliveries } from '../harness/webhook/deliveries.ts'
import {
  insertManyWebhooks,
  observeRows,
  startDispatcher,
  startSilentApp,
} from '../harness/webhook/dispatcher.ts'
import { TurnClock } from '../harness/timing/eventually.ts'
import { hang, startReceiver } from '../harness/webhook/receiver.ts'
import { makeWebhook } from '../harness/webhook/webhooks.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const silent = stack.use(await startSilentApp())

const MANY = 1_500
const DELIVERIES = 20

const percentile = (values: readonly number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.ceil(values.length * share) - 1] ?? 0

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)

test('webhooks of a company at its limit are served in turn, once by two nodes', async () => {
  await using own = new AsyncDisposableStack()
  const receiver = own.use(await startReceiver({ afterMs: 5 }))
  const tenant = await silent.createCompany()
  const urls = Array.from({ length: 20 }, (_, nth) => `${receiver.url}/${nth}`)
  await insertManyWebhooks(silent, tenant, urls)
  await sendEvents(silent, tenant.workspaceKey, 4)
  const limits = { heldPerCompanyMax: 1 }
  for (let nodes = 0; nodes < 2; nodes += 1) startDispatcher(own, silent, { limits })
  const requests = await receiver.waitFor(80)
  const first = requests.slice(0, 60).map(({ path }) => path)
  assert.equal(new Set(first).size, 20, first.join())
  const sent = requests.map((request) => `${request.path} ${eventIdOf(request)}`)
  assert.deepEqual([sent.length, new Set(sent).size], [80, 80])
})

test('a round that takes too long ends, and the next one serves the remaining webhooks', async () => {
  await using own = new AsyncDisposableStack()
  const receiver = own.use(await startReceiver())
  const tenant = await silent.createCompany()
  const urls = Array.from({ length: 20 }, (_, nth) => `${receiver.url}/${nth}`)
  await insertManyWebhooks(silent, tenant, urls)
  await sendEvents(silent, tenant.workspaceKey, 1)
  let rounds = 0
  const db = observeRows(silent.app.database.db, ([row]) => {
    if (row && 'companyWorkCount' in row) rounds += 1
  })
  startDispatcher(own, silent, { db, limits: { roundMsMax: 0, statementsAtOnceMax: 2 } })
  const requests = await receiver.waitFor(20)
  assert.equal(new Set(requests.map(({ path }) => path)).size, 20)
  assert(rounds >= 10, `${rounds} rounds`)
})

const EVENTS = 20
const EVENT_BYTES = 16 * 1_024
const SHARE_BYTES = 4 * EVENT_BYTES

for (const waits of ['in the ledger', 'as deliveries']) {
  test(`large events that wait ${waits} are fetched up to the share of a company at a time`, async () => {
    await using own = new AsyncDisposableStack()
    const receiver = own.use(await startReceiver())
    const tenant = await silent.createCompany()
    const id = await makeWebhook(silent, tenant, { url: receiver.url })
    const metadata = { text: 'x'.repeat(EVENT_BYTES) }
    await sendEvents(silent, tenant.workspaceKey, EVENTS, { metadata })
    if (waits === 'as deliveries') {
      await using creating = new AsyncDisposableStack()
      const limits = { heldPerCompanyMax: 0, idleFanOutMs: 1 }
      startDispatcher(creating, silent, { limits })
      await waitForDeliveries(silent, id, EVENTS, 'PENDING')
    }
    const fetchedBytes: number[] = []
    const db = observeRows(silent.app.database.db, (rows) => {
      fetchedBytes.push(
        sum(rows.map((row) => ('metadata' in row ? String(row.metadata).length : 0))),
      )
    })
    startDispatcher(own, silent, { db, limits: { heldBytesPerCompanyMax: SHARE_BYTES } })
    await waitForDeliveries(silent, id, EVENTS, 'SUCCEEDED')
    assert.equal(receiver.requestCount, EVENTS)
    assert(sum(fetchedBytes) >= EVENTS * EVENT_BYTES)
    const bytesMax = SHARE_BYTES + EVENT_BYTES + 1_024
    assert(Math.max(...fetchedBytes) <= bytesMax, `${Math.max(...fetchedBytes)} bytes`)
  })
}

// The last test, because its webhooks keep every later dispatcher busy.
test('1,500 webhooks with a hanging receiver do not delay the webhooks of another company', async () => {
  await using own = new AsyncDisposableStack()
  const hanging = own.use(await startReceiver(hang))
  const receiver = own.use(await startReceiver())
  const large = await silent.createCompany()
  await insertManyWebhooks(
    silent,
    large,
    Array.from({ length: MANY }, () => hanging.url),
  )
  const small = await silent.createCompany()
  await makeWebhook(silent, small, { url: receiver.url })
  await sendEvents(silent, large.workspaceKey, 20)

  let statements = 0
  const db = observeRows(silent.app.database.db, () => (statements += 1))
  const dispatcher = startDispatcher(own, silent, { db, random: randomFraction })
  using clock = new TurnClock()
  await hanging.waitFor(1)
  const waitsMs: number[] = []
  const statementsBefore: number[] = []
  for (let sent = 1; sent <= DELIVERIES; sent += 1) {
    await sendEvents(silent, large.workspaceKey, 1)
    await sendEvents(silent, small.workspaceKey, 1)
    dispatcher.wake()
    const startedAtMs = clock.ms
    const startedAt = statements
    await receiver.waitFor(sent)
    waitsMs.push(clock.ms - startedAtMs)
    statementsBefore.push(statements - startedAt)
  }
  assert(percentile(statementsBefore, 0.95) < 100, statementsBefore.join())
  assert(percentile(waitsMs, 0.5) < 1_000, waitsMs.join())
})
