import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { NODE_PART_LENGTH } from '../../src/platform/node/node-presence.ts'
import { AnnalsProcess } from '../harness/app/annals-process.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { query } from '../harness/database/engine.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'
import { eventually, eventuallyWithin } from '../harness/timing/eventually.ts'
import { deliveryIdOf, sendEvents } from '../harness/webhook/deliveries.ts'
import { type ReceiverResponse, startReceiver } from '../harness/webhook/receiver.ts'
import { ANY_DESTINATION, makeWebhook } from '../harness/webhook/webhooks.ts'

const TAKEN_OVER_MS_MAX = 15_000
/** Renewals of a worker's row after which it takes over the deliveries of others. */
const RENEWALS = 4

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const database = stack.use(await cloneDatabase())
const env = { ...ANY_DESTINATION, ANNALS_RATE_LIMITS: 'off' }
const api = stack.use(await startTestApp({ role: 'api', databaseUrl: database.url, env }))

type Worker = { id: string; annals: AnnalsProcess }

async function startWorker(own: AsyncDisposableStack): Promise<Worker> {
  const known = await listWorkers()
  const annals = new AnnalsProcess(['serve', '--role', 'worker'], {
    ...env,
    ANNALS_DATABASE_URL: database.url,
    ANNALS_SECRET_KEY: api.app.dataSource.secretKey.reveal().toString('base64'),
    ANNALS_LOG_LEVEL: 'error',
  })
  own.defer(async () => {
    annals.signal('SIGKILL')
    await annals.exited
  })
  const id = await eventually(async () => {
    const fresh = (await listWorkers()).find((one) => !known.includes(one))
    assert(fresh)
    return fresh
  })
  return { id, annals }
}

const listWorkers = async (): Promise<string[]> =>
  (await query(database.connection, `select id from node where role = 'worker'`)).map((row) =>
    String(row['id']),
  )

async function waitForRenewals({ id }: Worker): Promise<void> {
  for (let renewals = 0, last = ''; renewals < RENEWALS;) {
    const [row] = await query(
      database.connection,
      `select seen_at::text as at from node where id = '${id}'`,
    )
    const at = String(row?.['at'])
    if (at !== last) renewals += 1
    last = at
    await eventually(async () => {
      const [next] = await query(
        database.connection,
        `select from node where id = '${id}' and seen_at::text <> '${last}'`,
      )
      assert(next)
    })
  }
}

async function listLeasedBy({ id }: Worker): Promise<string[]> {
  const rows = await query(
    database.connection,
    `select id from webhook_delivery
      where status = 'SENDING' and starts_with(lease::text, '${id.slice(0, NODE_PART_LENGTH)}')`,
  )
  return rows.map((row) => String(row['id']))
}

/** Two workers that send to a receiver which doesn't respond until `respond` is called. */
async function startScene(own: AsyncDisposableStack) {
  const held = Promise.withResolvers<ReceiverResponse>()
  let holds = true
  const receiver = own.use(await startReceiver(() => (holds ? held.promise : { status: 200 })))
  const [dying, living] = [await startWorker(own), await startWorker(own)]
  await waitForRenewals(living)
  const tenant = await api.createCompany()
  const webhookId = await makeWebhook(api, tenant, { url: receiver.url })
  const leased = await eventually(async () => {
    await sendEvents(api, tenant.workspaceKey, 20)
    const both = { dying: await listLeasedBy(dying), living: await listLeasedBy(living) }
    assert(both.dying.length > 0 && both.living.length > 0, 'both workers have deliveries')
    return both
  })
  const countOf = (id: string) => receiver.requests.filter((one) => deliveryIdOf(one) === id).length
  await eventually(() => assert(leased.dying.some((id) => countOf(id) === 1)))
  return {
    dying,
    living,
    countOf,
    webhookId,
    /** From now on, the receiver accepts new requests at once. */
    accept: () => (holds = false),
    /** Responds to the requests from before. */
    respond: (status: number) => held.resolve({ status }),
    leased,
  }
}

const statesOf = async (ids: readonly string[]) =>
  await query(
    database.connection,
    `select distinct status, response_status as response from webhook_delivery
      where id = any('{${ids.join()}}'::uuid[])`,
  )

test('the deliveries of a killed worker are sent by another one within 15 seconds, and no others twice', async () => {
  await using own = new AsyncDisposableStack()
  const { dying, countOf, accept, leased } = await startScene(own)
  const sent = leased.dying.filter((id) => countOf(id) === 1)
  accept()
  dying.annals.signal('SIGKILL')
  await eventuallyWithin(TAKEN_OVER_MS_MAX, () => {
    for (const id of sent) assert.equal(countOf(id), 2)
    for (const id of leased.dying) assert(countOf(id) > 0)
  })
  for (const id of leased.living) assert(countOf(id) <= 1, 'a live worker keeps its deliveries')
})

test('a paused worker loses its deliveries, and neither sends nor settles them when it resumes', async () => {
  await using own = new AsyncDisposableStack()
  const { dying, living, countOf, accept, respond, leased } = await startScene(own)
  const sent = leased.dying.filter((id) => countOf(id) === 1)
  accept()
  dying.annals.signal('SIGSTOP')
  const accepted = [{ status: 'SUCCEEDED', response: 200 }]
  await eventuallyWithin(2 * TAKEN_OVER_MS_MAX, async () =>
    assert.deepEqual(await statesOf(leased.dying), accepted),
  )
  for (const id of sent) assert.equal(countOf(id), 2)
  // Others were sent before the pause only if their requests were on the way by then.
  const counts = leased.dying.map(countOf)
  respond(500)
  dying.annals.signal('SIGCONT')
  await waitForRenewals(dying)
  assert.deepEqual(await statesOf(leased.dying), accepted)
  assert.deepEqual(leased.dying.map(countOf), counts)
  await eventually(async () => assert.deepEqual(await listLeasedBy(living), []))
})
