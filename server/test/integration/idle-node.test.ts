import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HOUR_MS } from '../../src/platform/time/time-units.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { PgProxy } from '../harness/database/pg-proxy.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'
import { eventually, eventuallyWithin } from '../harness/timing/eventually.ts'
import { sendEvents } from '../harness/webhook/deliveries.ts'
import { observeRows, startDispatcher, startSilentApp } from '../harness/webhook/dispatcher.ts'
import { startReceiver } from '../harness/webhook/receiver.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const STATEMENTS_PER_SECOND_MAX = 5
/** The write probe runs every two seconds. Some loops run only every ten. */
const PROBES = 10
/** By then, every loop has run once. The first pass of the signer creates the list of its keys. */
const PROBES_AT_START = 4
const PROBE = 'synchronous_standby_names'
/** How a node without webhooks learns of the first one. */
const WATCH = 'select distinct "workspace_id" from "webhook"'
/** Much less than the second between two of these. */
const FIRST_DELIVERY_MS_MAX = 300

for (const webhooks of [0, 1]) {
  test(`an idle node with ${webhooks} webhooks sends at most five statements per second`, async () => {
    await using node = await startProxiedNode()
    if (webhooks > 0) await sendToWebhook(node)
    const countAtStart = node.proxy.countSent(PROBE)
    await eventually(() => assert.equal(countAtStart(), PROBES_AT_START))
    // A busy machine makes the time longer, which never adds statements.
    const startedAtMs = performance.now()
    const countProbes = node.proxy.countSent(PROBE)
    const countAll = node.proxy.countStatements()
    await eventually(() => assert.equal(countProbes(), PROBES))
    const perSecond = (countAll() * 1_000) / (performance.now() - startedAtMs)
    assert(perSecond <= STATEMENTS_PER_SECOND_MAX, `${perSecond.toFixed(1)} per second`)
  })
}

test('the first webhook of an idle node gets its first event at once', async () => {
  await using node = await startProxiedNode()
  await using receiver = await startReceiver()
  const tenant = await node.createCompany()
  const countWatches = node.proxy.countSent(WATCH)
  await eventually(() => assert.equal(countWatches(), 1))
  const path = `/v1/workspaces/${tenant.workspace.id}/webhooks`
  const body = { url: receiver.url }
  const created = await node.call('POST', path, { key: tenant.companyKey, body })
  assert.equal(created.status, 201, created.text)
  await sendEvents(node, tenant.workspaceKey, 1)
  await eventuallyWithin(FIRST_DELIVERY_MS_MAX, () => assert.equal(receiver.requestCount, 1))
})

test('a node without webhooks finds the first webhook of another node', async () => {
  await using silent = await startSilentApp()
  await using own = new AsyncDisposableStack()
  const receiver = own.use(await startReceiver())
  const tenant = await silent.createCompany()
  startDispatcher(own, silent, { limits: { idlePollMs: 20 } })
  await makeWebhook(silent, tenant, { url: receiver.url })
  await sendEvents(silent, tenant.workspaceKey, 1)
  await receiver.waitFor(1)
})

test('a change of webhooks ends the wait of a node without webhooks', async () => {
  await using silent = await startSilentApp()
  await using own = new AsyncDisposableStack()
  const receiver = own.use(await startReceiver())
  const tenant = await silent.createCompany()
  let reads = 0
  const db = observeRows(silent.app.database.db, () => (reads += 1))
  const dispatcher = startDispatcher(own, silent, { db, limits: { idlePollMs: HOUR_MS } })
  await eventually(() => assert.equal(reads, 1))
  await makeWebhook(silent, tenant, { url: receiver.url })
  await sendEvents(silent, tenant.workspaceKey, 1)
  dispatcher.wake()
  await receiver.waitFor(1)
})

/** A webhook that has got an event. */
async function sendToWebhook(node: Awaited<ReturnType<typeof startProxiedNode>>): Promise<void> {
  await using receiver = await startReceiver()
  const tenant = await node.createCompany()
  await makeWebhook(node, tenant, { url: receiver.url })
  await sendEvents(node, tenant.workspaceKey, 1)
  await receiver.waitFor(1)
}

async function startProxiedNode() {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await cloneDatabase())
  const proxy = stack.use(await PgProxy.listen(database.connection))
  const databaseUrl = proxy.urlTo(database.connection)
  const app = stack.use(await startTestApp({ databaseUrl, env: ANY_DESTINATION }))
  const kept = stack.move()
  return { ...app, proxy, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}
