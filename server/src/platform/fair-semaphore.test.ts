import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FairSemaphore, QueueFullError } from './fair-semaphore.ts'

const { signal } = new AbortController()
const LIMITS = { waitingMax: 100, waitingPerCompanyMax: 50 }

/** Requests a permit, and adds the name to `order` when it is granted. */
function ask(turns: FairSemaphore, companyId: string, order: string[], name = companyId) {
  return turns.take(companyId, signal).then((turn) => (order.push(name), turn))
}

test('runs at most the limit at once, and the others in order', async () => {
  const turns = new FairSemaphore({ ...LIMITS, permitsMax: 2 })
  const order: string[] = []
  const [first, second] = [await turns.take('a', signal), await turns.take('b', signal)]
  const third = ask(turns, 'c', order)
  const fourth = ask(turns, 'd', order)
  assert(turns.isCrowded)
  first[Symbol.dispose]()
  const turn = await third
  assert.deepEqual(order, ['c'])
  second[Symbol.dispose]()
  turn[Symbol.dispose]()
  const last = await fourth
  last[Symbol.dispose]()
  assert(!turns.isCrowded)
  await Promise.all([turns.take('a', signal), turns.take('a', signal)])
})

test('serves the company with the fewest slots next, however long the others wait', async () => {
  const turns = new FairSemaphore({ ...LIMITS, permitsMax: 3 })
  const order: string[] = []
  const greedy = await Promise.all(Array.from({ length: 3 }, () => turns.take('greedy', signal)))
  const waiting = ['greedy 1', 'greedy 2'].map((name) => ask(turns, 'greedy', order, name))
  const modest = ['modest 1', 'modest 2'].map((name) => ask(turns, 'modest', order, name))
  const other = ask(turns, 'other', order)
  for (const turn of greedy) turn[Symbol.dispose]()
  const first = await Promise.all([modest[0], other, waiting[0]])
  assert.deepEqual(order, ['modest 1', 'other', 'greedy 1'])
  for (const turn of first) turn?.[Symbol.dispose]()
  await Promise.all([...modest, ...waiting])
  assert.deepEqual(order.slice(3).toSorted(), ['greedy 2', 'modest 2'])
})

test('a caller that arrives between two slots waits like the others', async () => {
  const turns = new FairSemaphore({ ...LIMITS, permitsMax: 1 })
  const order: string[] = []
  const turn = await turns.take('a', signal)
  const second = ask(turns, 'b', order)
  turn[Symbol.dispose]()
  const third = ask(turns, 'c', order)
  const turnOfB = await second
  assert.deepEqual(order, ['b'])
  turnOfB[Symbol.dispose]()
  await third
  assert.deepEqual(order, ['b', 'c'])
})

test('a caller that aborts while waiting leaves the queue', async () => {
  const turns = new FairSemaphore({ ...LIMITS, permitsMax: 1 })
  const turn = await turns.take('a', signal)
  const stop = new AbortController()
  const stopped = turns.take('a', stop.signal)
  const patient = turns.take('a', signal)
  stop.abort(new Error('stopped'))
  await assert.rejects(stopped, /stopped/)
  await assert.rejects(turns.take('a', stop.signal), /stopped/)
  turn[Symbol.dispose]()
  await patient
})

test('rejects callers beyond the queue limit, and a crowd of one company rejects only its own', async () => {
  const turns = new FairSemaphore({ permitsMax: 1, waitingMax: 3, waitingPerCompanyMax: 2 })
  const first = await turns.take('greedy')
  const waiting = [turns.take('greedy'), turns.take('greedy')]
  await assert.rejects(turns.take('greedy'), QueueFullError)
  const modest = turns.take('modest')
  await assert.rejects(turns.take('other'), QueueFullError)
  first[Symbol.dispose]()
  for (const turn of [...waiting, modest]) (await turn)[Symbol.dispose]()
  await turns.take('greedy')
})

test('limits a company to its share of slots, while another company starts immediately', async () => {
  const turns = new FairSemaphore({ ...LIMITS, permitsMax: 4, permitsPerCompanyMax: 2 })
  const order: string[] = []
  const [first, second] = await Promise.all([
    ask(turns, 'greedy', order),
    ask(turns, 'greedy', order),
  ])
  const waiting = ask(turns, 'greedy', order, 'greedy 3')
  const others = await Promise.all([ask(turns, 'modest', order), ask(turns, 'other', order)])
  assert.deepEqual(order, ['greedy', 'greedy', 'modest', 'other'])
  // A free permit is not given to the company that already has its share.
  for (const turn of others) turn[Symbol.dispose]()
  await ask(turns, 'modest', order, 'modest 2')
  assert.equal(order.at(-1), 'modest 2')
  first[Symbol.dispose]()
  ;(await waiting)[Symbol.dispose]()
  second[Symbol.dispose]()
  assert.equal(order.at(-1), 'greedy 3')
})

test('rejects a caller that waits too long, and serves the next one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const turns = new FairSemaphore({ ...LIMITS, permitsMax: 1, waitMsMax: 1_000 })
  const turn = await turns.take('a')
  const late = turns.take('a')
  t.mock.timers.tick(500)
  const inTime = turns.take('a')
  t.mock.timers.tick(500)
  await assert.rejects(late, QueueFullError)
  turn[Symbol.dispose]()
  await inTime
})

test('a company above its share gets one slot at a time, while another company starts immediately', async () => {
  const over = new Set(['busy'])
  const share = { pauseMs: () => 0, isOver: (companyId: string) => over.has(companyId) }
  const turns = new FairSemaphore({ ...LIMITS, permitsMax: 4, share })
  const order: string[] = []
  const first = await turns.take('busy', signal)
  const second = ask(turns, 'busy', order)
  assert.equal(turns.tryTake('busy'), null)
  await ask(turns, 'quiet', order)
  assert.deepEqual(order, ['quiet'])
  first[Symbol.dispose]()
  await second
  over.clear()
  assert(turns.tryTake('busy'))
})

test('a paused company gets no slot until the pause ends, and others do not wait for it', async () => {
  const pauses = new Map([['busy', 20]])
  const share = { pauseMs: (companyId: string) => pauses.get(companyId) ?? 0, isOver: () => false }
  const turns = new FairSemaphore({ ...LIMITS, permitsMax: 2, share })
  const order: string[] = []
  const paused = ask(turns, 'busy', order)
  assert(!turns.isCrowded)
  const turn = await ask(turns, 'quiet', order)
  turn[Symbol.dispose]()
  assert.deepEqual(order, ['quiet'])
  // It starts although the pause was extended meanwhile. Otherwise it would never start.
  await paused
  pauses.clear()
  await ask(turns, 'busy', order)
  assert.deepEqual(order, ['quiet', 'busy', 'busy'])
})

test('the callers of a company take turns, however many requests one of them has', async () => {
  const semaphore = new FairSemaphore({ ...LIMITS, permitsMax: 1 })
  const order: string[] = []
  const take = (caller: string) =>
    semaphore.take('company', signal, caller).then((permit) => {
      order.push(caller)
      permit[Symbol.dispose]()
    })
  const first = await semaphore.take('company', signal, 'key')
  const requests = [...Array.from({ length: 10 }, () => take('key')), take('owner'), take('owner')]
  first[Symbol.dispose]()
  await Promise.all(requests)
  assert.deepEqual(order.slice(0, 4), ['key', 'owner', 'key', 'owner'])
})

test('a full queue refuses the caller with the most requests, not the others of its company', async () => {
  const limits = { permitsMax: 1, waitingMax: 100, waitingPerCompanyMax: 3 }
  const semaphore = new FairSemaphore(limits)
  const first = await semaphore.take('company', signal, 'key')
  const waiting = Array.from({ length: 3 }, () => semaphore.take('company', signal, 'key'))
  await assert.rejects(semaphore.take('company', signal, 'key'), QueueFullError)
  const owner = semaphore.take('company', signal, 'owner')
  await assert.rejects(waiting[2] ?? Promise.resolve(), QueueFullError)
  first[Symbol.dispose]()
  for (const permit of [waiting[0], owner, waiting[1]]) (await permit)?.[Symbol.dispose]()
})
