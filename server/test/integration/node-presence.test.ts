import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, test } from 'node:test'
import { createLogger } from '../../src/platform/logger.ts'
import { NODE_TIMES, NodePresence } from '../../src/platform/node/node-presence.ts'
import { manualClock } from '../harness/timing/clock.ts'
import { startTestApp } from '../harness/app/start-app.ts'
import { query } from '../harness/database/engine.ts'

const annals = await startTestApp({ role: 'api' })
after(() => annals[Symbol.asyncDispose]())
const { connection } = annals.database
const { db } = annals.app.database
const run = (text: string) => query(connection, text)

beforeEach(() => run('delete from node'))

async function startPresence(own: AsyncDisposableStack) {
  const { clock: monotonic, advance } = manualClock(0)
  const times = { ...NODE_TIMES, renewMs: 3_600_000 }
  const logger = createLogger('silent')
  const presence = own.use(new NodePresence({ db, role: 'worker', monotonic, logger, times }))
  const reported: string[][] = []
  presence.onDead(async (ids) => void reported.push([...ids]))
  /** Renews its row as often as a node does. */
  const live = async (ms: number) => {
    for (let passedMs = 0; passedMs < ms; passedMs += NODE_TIMES.renewMs) {
      advance(NODE_TIMES.renewMs)
      await presence.renewNow()
    }
  }
  await presence.renewNow()
  return { presence, reported, advance, live }
}

/** A node that was last seen this long ago. */
async function insertNode(seconds: number): Promise<string> {
  const id = randomUUID()
  await run(`insert into node values ('${id}', 'worker', now() - interval '${seconds} seconds')`)
  return id
}

const listWorkers = async () =>
  (await run(`select id from node where role = 'worker'`)).map(({ id }) => id)

test('a node that is silent for nine seconds is reported as dead, and no other node is', async () => {
  await using own = new AsyncDisposableStack()
  const dead = await insertNode(10)
  await insertNode(-60)
  const { reported, live } = await startPresence(own)
  await live(NODE_TIMES.deadMs)
  assert.deepEqual(reported, [[dead]])
})

test('after an outage or a pause, a node has lost its leases, and waits before it reports others', async () => {
  await using own = new AsyncDisposableStack()
  const { presence, reported, advance, live } = await startPresence(own)
  await live(2 * NODE_TIMES.deadMs)
  const other = await insertNode(60)
  advance(NODE_TIMES.deadMs)
  assert.equal(presence.hasLeases, true, 'no other node could take them over')
  const { leaseEpoch } = presence
  await presence.renewNow()
  assert.notEqual(presence.leaseEpoch, leaseEpoch, 'leases of before are not relied on')
  assert.deepEqual([presence.hasLeases, reported], [true, []])
  const { leaseEpoch: current } = presence
  await live(NODE_TIMES.deadMs - NODE_TIMES.renewMs)
  assert.equal(presence.leaseEpoch, current)
  assert.deepEqual(reported, [])
  await live(NODE_TIMES.renewMs)
  assert.deepEqual(reported, [[other]])
  advance(NODE_TIMES.deadMs)
  assert.equal(presence.hasLeases, false)
})

test('a node that stops deletes its row, and a node whose row was deleted creates it again', async () => {
  await using own = new AsyncDisposableStack()
  const { presence } = await startPresence(own)
  await insertNode(NODE_TIMES.forgetMs / 1_000 + 1)
  await presence.renewNow()
  assert.deepEqual(await listWorkers(), [presence.id])
  await run('delete from node')
  await presence.renewNow()
  assert.deepEqual(await listWorkers(), [presence.id])
  await own.disposeAsync()
  assert.deepEqual(await listWorkers(), [])
})
