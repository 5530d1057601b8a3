import assert from 'node:assert/strict'
import { scrypt as scryptWithCallback, type BinaryLike, type ScryptOptions } from 'node:crypto'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { ApiError } from '../../errors.ts'
import { HashingQueue } from './hashing-queue.ts'

const scrypt = promisify<BinaryLike, BinaryLike, number, ScryptOptions, Buffer>(scryptWithCallback)

const ANYONE = ['account anyone']

const account = (name: string) => `account ${name}`
const network = (name: string) => `network ${name}`

/** A queue whose only slot is busy until `release`, and the order in which its callers run. */
function busyQueue(waitingMax: number) {
  const queue = new HashingQueue({ runningMax: 1, waitingMax })
  const order: string[] = []
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const running = queue.run(ANYONE, () => promise)
  const ask = async (name: string, owners: readonly string[], { isKnown = false } = {}) => {
    try {
      await queue.run(owners, async () => void order.push(name), { isKnown })
      return 'done'
    } catch (error) {
      assert(error instanceof ApiError)
      return error.code
    }
  }
  return { order, ask, release, running }
}

test('runs some, queues others in order of arrival, and rejects the rest immediately', async () => {
  const queue = new HashingQueue({ runningMax: 2, waitingMax: 3 })
  const order: number[] = []
  const ends = Array.from({ length: 6 }, () => Promise.withResolvers<void>())
  const runs = ends.map(({ promise }, index) =>
    queue.run(ANYONE, async () => {
      order.push(index)
      await promise
    }),
  )
  await assert.rejects(runs[5] ?? Promise.resolve(), { code: 'overloaded', retryAfterSeconds: 1 })
  assert.deepEqual(order, [0, 1])
  for (const { resolve } of ends) resolve()
  await Promise.all(runs.slice(0, 5))
  assert.deepEqual(order, [0, 1, 2, 3, 4])
})

test('a failure makes room for the next', async () => {
  const queue = new HashingQueue({ runningMax: 1, waitingMax: 1 })
  const failed = queue.run(ANYONE, async () => {
    throw new Error('no')
  })
  const next = queue.run(ANYONE, async () => 'yes')
  await assert.rejects(failed, /no/)
  assert.equal(await next, 'yes')
  assert.equal(await queue.run(ANYONE, async () => 'again'), 'again')
})

test('while callers wait, pauses between two hashes for as long as the last one took', async (t) => {
  // Real timers can fire a little early.
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const queue = new HashingQueue({ runningMax: 1, waitingMax: 2 })
  let begun = 0
  const work = async (): Promise<number> => {
    begun += 1
    const beganMs = performance.now()
    await scrypt('password', 'salt', 64, { N: 32_768, maxmem: 2 ** 26 })
    return performance.now() - beganMs
  }
  const hashes = Array.from({ length: 3 }, () => queue.run(ANYONE, work))
  for (const [nth, hash] of hashes.entries()) {
    const tookMs = await hash
    t.mock.timers.tick(Math.floor(tookMs) - 1)
    await new Promise(setImmediate)
    assert.equal(begun, nth + 1)
    // The queue measures a little more than the hash itself, or much more if the machine pauses.
    t.mock.timers.tick(60_000)
    await new Promise(setImmediate)
    assert.equal(begun, Math.min(3, nth + 2))
  }
})

test('a caller waits for one hash of an account that sent four before', async () => {
  const { order, ask, release, running } = busyQueue(10)
  const flood = ['1', '2', '3', '4'].map((nth) => ask(`greedy ${nth}`, [account('greedy')]))
  const modest = ask('modest', [account('modest')])
  release()
  await Promise.all([running, ...flood, modest])
  assert.deepEqual(order, ['greedy 1', 'modest', 'greedy 2', 'greedy 3', 'greedy 4'])
})

test('a caller waits for one hash of a network that sent many accounts', async () => {
  const { order, ask, release, running } = busyQueue(10)
  const flood = ['1', '2', '3'].map((nth) => ask(`greedy ${nth}`, [network('a'), account(nth)]))
  const modest = ask('modest', [network('b'), account('modest')])
  release()
  await Promise.all([running, ...flood, modest])
  assert.deepEqual(order, ['greedy 1', 'modest', 'greedy 2', 'greedy 3'])
})

test('a caller waits for one hash of an account that came from many networks', async () => {
  const { order, ask, release, running } = busyQueue(10)
  const flood = ['1', '2', '3'].map((nth) => ask(`greedy ${nth}`, [network(nth), account('a')]))
  const modest = ask('modest', [network('b'), account('modest')])
  release()
  await Promise.all([running, ...flood, modest])
  assert.deepEqual(order, ['greedy 1', 'modest', 'greedy 2', 'greedy 3'])
})

test('accounts of one network take turns', async () => {
  const { order, ask, release, running } = busyQueue(10)
  const flood = ['1', '2', '3'].map((nth) => ask(`greedy ${nth}`, [network('n'), account('a')]))
  const colleague = ask('colleague', [network('n'), account('b')])
  release()
  await Promise.all([running, ...flood, colleague])
  assert.deepEqual(order, ['greedy 1', 'colleague', 'greedy 2', 'greedy 3'])
})

test('a full queue rejects the newest caller of the account with the most callers', async () => {
  const { order, ask, release, running } = busyQueue(3)
  const of = (name: string) => [network('n'), account(name)]
  const flood = ['1', '2', '3', '4'].map((nth) => ask(`greedy ${nth}`, of('greedy')))
  const others = ['a', 'b', 'c'].map((name) => ask(name, of(name)))
  release()
  assert.deepEqual(await Promise.all(flood), ['done', 'overloaded', 'overloaded', 'overloaded'])
  assert.deepEqual(await Promise.all(others), ['done', 'done', 'overloaded'])
  await running
  assert.deepEqual(order, ['greedy 1', 'a', 'b'])
})

test('a full queue rejects the newest caller of the network with the most callers', async () => {
  const { ask, release, running } = busyQueue(4)
  const flood = ['1', '2', '3', '4'].map((nth) =>
    ask(`greedy ${nth}`, [network('n'), account(nth)]),
  )
  // The same account twice, which is still fewer callers than the flooding network has.
  const modest = ['1', '2'].map((nth) => ask(`modest ${nth}`, [network('m'), account('m')]))
  release()
  assert.deepEqual(await Promise.all(flood), ['done', 'done', 'overloaded', 'overloaded'])
  assert.deepEqual(await Promise.all(modest), ['done', 'done'])
  await running
})

test('a queue full of single callers rejects the newest unknown one', async () => {
  const { ask, release, running } = busyQueue(3)
  const of = (name: string) => [network(name), account(name)]
  const strangers = ['1', '2', '3'].map((name) => ask(name, of(name)))
  const known = ask('known', of('known'), { isKnown: true })
  const greedy = ['1', '2'].map(() => ask('greedy', of('greedy'), { isKnown: true }))
  release()
  assert.deepEqual(await Promise.all(strangers), ['done', 'overloaded', 'overloaded'])
  assert.equal(await known, 'done')
  assert.deepEqual(await Promise.all(greedy), ['done', 'overloaded'])
  await running
})

test('new owners do not overtake waiting callers', async () => {
  const { order, ask, release, running } = busyQueue(10)
  const own = ['own 1', 'own 2', 'own 3'].map((name) => ask(name, [account('own')]))
  let strangers = 0
  const stranger = async (): Promise<void> => {
    const name = `stranger ${(strangers += 1)}`
    await ask(name, [account(name)])
    if (!order.includes('own 3')) await stranger()
  }
  const flood = Promise.all([stranger(), stranger()])
  release()
  await Promise.all([running, ...own, flood])
  // At most two strangers run between two callers of `own`.
  assert(order.indexOf('own 3') <= 6, order.join())
})
