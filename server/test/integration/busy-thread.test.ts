import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Client } from 'pg'
import { whileAlive, withDeadline } from '../../src/platform/time/deadline.ts'
import { serverListOf } from '../../src/platform/pg/servers.ts'
import { probeDatabase } from '../../src/platform/pg/probe-database.ts'
import { cloneDatabase } from '../harness/database/template-db.ts'

const stack = new AsyncDisposableStack()
after(() => stack.disposeAsync())
const { connection } = stack.use(await cloneDatabase())
const client = new Client(connection)
await client.connect()
stack.defer(() => client.end())

const late = () => new Error('late')

/** Blocks this thread, as a long computation would. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

/** Sends a statement whose result arrives while this thread is blocked. */
function sendAndBlock(ms: number): Promise<unknown> {
  const result = client.query('select 1')
  process.nextTick(block, ms)
  return result
}

test('treats a healthy database as alive even if the thread was blocked past the timeout', async () => {
  const server = serverListOf(connection).current
  const opinion = probeDatabase(server)
  block(600)
  assert.equal(await opinion, true)
  const isReachable = probeDatabase(server, async (other) => {
    const result = other.query('select 1')
    block(600)
    return (await result).rowCount === 1
  })
  assert.equal(await isReachable, true)
})

/** After this, timers run before the next I/O is read. */
const untilTimersAreNext = () => new Promise(setImmediate)

test('reads a response that has arrived before checking the database', async () => {
  let probes = 0
  const isAlive = async () => {
    probes += 1
    return false
  }
  await untilTimersAreNext()
  await whileAlive(sendAndBlock(100), { everyMs: 20, isAlive, dead: late })
  assert.equal(probes, 0)
})

test('reads a response that has arrived before a deadline expires', async () => {
  await untilTimersAreNext()
  await withDeadline(sendAndBlock(100), { timeoutMs: 20, late })
})
