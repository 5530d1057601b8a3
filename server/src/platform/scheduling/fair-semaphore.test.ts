import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FairSemaphore, QueueFullError } from './fair-semaphore.ts'

const { signal } = new AbortController()
const LIMITS = { waitingMax: 100, waitingPerCompanyMax: 50 }

/** Requests a permit, and adds the name to `order` when it is granted. */
function ask(semaphore: FairSemaphore, companyId: string, order: string[], name = companyId) {
  return semaphore.take(companyId, signal).then((permit) => (order.push(name), permit))
}

test('grants the configured number of permits, then the others in order', async () => {
  const semaphore = new FairSemaphore({ ...LIMITS, permitsMax: 2 })
  const order: string[] = []
  const [first, second] = [await semaphore.take('a', signal), await semaphore.take('b', signal)]
  const third = ask(semaphore, 'c', order)
  const fourth = ask(semaphore, 'd', order)
  assert(semaphore.isCrowded)
  first[Symbol.dispose]()
  const permit = await third
  assert.deepEqual(order, ['c'])
  second[Symbol.dispose]()
  permit[Symbol.dispose]()
  const last = await fourth
  last[Symbol.dispose]()
  assert(!semaphore.isCrowded)
  await Promise.all([semaphore.take('a', signal), semaphore.take('a', signal)])
})

test('grants the next permit to the company with the fewest, however long others wait', async () => {
  const semaphore = new FairSemaphore({ ...LIMITS, permitsMax: 3 })
  const order: string[] = []
  const greedy = await Promise.all(
    Array.from({ length: 3 }, () => semaphore.take('greedy', signal)),
  )
  const waiting = ['greedy 1', 'greedy 2'].map((name) => ask(semaphore, 'greedy', order, name))
  const modest = ['modest 1', 'modest 2'].map((name) => ask(semaphore, 'modest', order, name))
  const other = ask(semaphore, 'other', order)
  for (const permit of greedy) permit[Symbol.dispose]()
  const first = await Promise.all([modest[0], other, waiting[0]])
  assert.deepEqual(order, ['modest 1', 'other', 'greedy 1'])
  for (const permit of first) permit?.[Symbol.dispose]()
  await Promise.all([...modest, ...waiting])
  assert.deepEqual(order.slice(3).toSorted(), ['greedy 2', 'modest 2'])
})

test('a caller that arrives between two permits waits behind the others', async () => {
  const semaphore = new FairSemaphore({ ...LIMITS, permitsMax: 1 })
  const order: string[] = []
  const permit = await semaphore.take('a', signal)
  const second = ask(semaphore, 'b', order)
  permit[Symbol.dispose]()
  const third = ask(semaphore, 'c', order)
  const turnOfB = await second
  assert.deepEqual(order, ['b'])
  turnOfB[Symbol.dispose]()
  await third
  assert.deepEqual(order, ['b', 'c'])
})

test('an aborted caller leaves the queue', async () => {
  const semaphore = new FairSemaphore({ ...LIMITS, permitsMax: 1 })
  const permit = await semaphore.take('a', signal)
  const stop = new AbortController()
  const stopped = semaphore.take('a', stop.signal)
  const patient = semaphore.take('a', signal)
  stop.abort(new Error('stopped'))
  await assert.rejects(stopped, /stopped/)
  await assert.rejects(semaphore.take('a', stop.signal), /stopped/)
  permit[Symbol.dispose]()
  await patient
})

test('a full queue rejects new callers immediately, and one company cannot fill it for others', async () => {
  const semaphore = new FairSemaphore({ permitsMax: 1, waitingMax: 3, waitingPerCompanyMax: 2 })
  const first = await semaphore.take('greedy')
  const waiting = [semaphore.take('greedy'), semaphore.take('greedy')]
  await assert.rejects(semaphore.take('greedy'), QueueFullError)
  const modest = semaphore.take('modest')
  await assert.rejects(semaphore.take('other'), QueueFullError)
  first[Symbol.dispose]()
  for (const permit of [...waiting, modest]) (await permit)[Symbol.dispose]()
  await semaphore.take('greedy')
})

test('a company gets no more permits than its share, and another company starts immediately', async () => {
  const semaphore = new FairSemaphore({ ...LIMITS, permitsMax: 4, permitsPerCompanyMax: 2 })
  const order: string[] = []
  const [first, second] = await Promise.all([
    ask(semaphore, 'greedy', order),
    ask(semaphore, 'greedy', order),
  ])
  const waiting = ask(semaphore, 'greedy', order, 'greedy 3')
  const others = await Promise.all([
    ask(semaphore, 'modest', order),
    ask(semaphore, 'other', order),
  ])
  assert.deepEqual(order, ['greedy', 'greedy', 'modest', 'other'])
  // A free permit is not given to the company that already has its share.
  for (const permit of others) permit[Symbol.dispose]()
  await ask(semaphore, 'modest', order, 'modest 2')
  assert.equal(order.at(-1), 'modest 2')
  first[Symbol.dispose]()
  ;(await waiting)[Symbol.dispose]()
  second[Symbol.dispose]()
  assert.equal(order.at(-1), 'greedy 3')
})

test('rejects a caller that waits too long, and serves the next one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const semaphore = new FairSemaphore({ ...LIMITS, permitsMax: 1, waitMsMax: 1_000 })
  const permit = await semaphore.take('a')
  const late = semaphore.take('a')
  t.mock.timers.tick(500)
  const inTime = semaphore.take('a')
  t.mock.timers.tick(500)
  await assert.rejects(late, QueueFullError)
  permit[Symbol.dispose]()
  await inTime
})

test('a company over its share gets one permit at a time, and another company starts meanwhile', async () => {
  const over = new Set(['busy'])
  const share = { pauseMs: () => 0, isOver: (companyId: string) => over.has(companyId) }
  const semaphore = new FairSemaphore({ ...LIMITS, permitsMax: 4, share })
  const order: string[] = []
  const first = await semaphore.take('busy', signal)
  const second = ask(semaphore, 'busy', order)
  assert.equal(semaphore.tryTake('busy'), null)
  await ask(semaphore, 'quiet', order)
  assert.deepEqual(order, ['quiet'])
  first[Symbol.dispose]()
  await second
  over.clear()
  assert(semaphore.tryTake('busy'))
})

test('a paused company gets no permit until the pause ends, and others do not wait for it', async () => {
  const pauses = new Map([['busy', 20]])
  const share = { pauseMs: (companyId: string) => pauses.get(companyId) ?? 0, isOver: () => false }
  const semaphore = new FairSemaphore({ ...LIMITS, permitsMax: 2, share })
  const order: string[] = []
  const paused = ask(semaphore, 'busy', order)
  assert(!semaphore.isCrowded)
  const permit = await ask(semaphore, 'quiet', order)
  permit[Symbol.dispose]()
  assert.deepEqual(order, ['quiet'])
  // It starts although the pause was extended meanwhile. Otherwise it would never start.
  await paused
  pauses.clear()
  await ask(semaphore, 'busy', order)
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
