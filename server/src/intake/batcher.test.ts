import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { rounds } from '../../test/harness/timing/fault-rounds.ts'
import { ApiError } from '../errors.ts'
import { Batcher, type BatcherLimits, type BatcherWeights } from './batcher.ts'

const LIMITS: BatcherLimits = {
  itemsPerBatchMax: 100,
  waitingMin: 100,
  waitingMax: 100,
  waitMsMax: 1_000_000,
}

/** An item's size is its length, and its owner is its first letter. */
const WEIGHTS: BatcherWeights<string> = {
  bytesOf: (item) => item.length,
  ownerOf: (item) => item.charAt(0),
  bytesPerOwnerMax: () => 4,
  bytesPerBatchMax: 12,
  waitingBytesMax: 1_000,
}

/** A commit function whose batches the test completes by hand. */
function handCommit() {
  const batches: string[][] = []
  const ends: { resolve: (results: string[]) => void; reject: (reason: unknown) => void }[] = []
  const started: (() => void)[] = []
  const shout = (items: readonly string[]) => items.map((item) => `${item}!`)
  return {
    batches,
    commit: (items: string[]) => {
      batches.push(items)
      started.shift()?.()
      return new Promise<string[]>((resolve, reject) => ends.push({ resolve, reject }))
    },
    /** Call this before the action that starts the next batch. */
    nextStart: () => new Promise<void>((resolve) => started.push(resolve)),
    finish: (index: number) => ends[index]?.resolve(shout(batches[index] ?? [])),
    fail: (index: number, reason: unknown) => ends[index]?.reject(reason),
  }
}

const isOverloaded = (error: unknown) => error instanceof ApiError && error.code === 'overloaded'

test('a failed commit rejects its own callers and no others', async () => {
  await using batcher = new Batcher<string, string>(
    async (items) => {
      if (items.includes('bad')) throw new Error('commit refused')
      return items.map((item) => `${item}!`)
    },
    { ...LIMITS, itemsPerBatchMax: 1 },
  )
  const [first, second, third] = await Promise.allSettled(
    ['a', 'bad', 'c'].map((item) => batcher.submit(item)),
  )
  assert.deepEqual(first, { status: 'fulfilled', value: 'a!' })
  assert.equal(second?.status, 'rejected')
  assert.deepEqual(third, { status: 'fulfilled', value: 'c!' })
})

test('every caller of a failed batch gets the reason', async () => {
  const reason = new Error('commit refused')
  await using batcher = new Batcher<string, string>(() => Promise.reject(reason), LIMITS)
  const results = await Promise.allSettled(['a', 'b'].map((item) => batcher.submit(item)))
  assert.deepEqual(results, [
    { status: 'rejected', reason },
    { status: 'rejected', reason },
  ])
})

test('a commit that returns too few results fails its callers instead of leaving one waiting', async () => {
  await using batcher = new Batcher<string, string>(async () => ['only one'], LIMITS)
  const results = await Promise.allSettled(['a', 'b'].map((item) => batcher.submit(item)))
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
})

test('calls in the same tick share a batch, and the next batch fills while one is in flight', async () => {
  const { batches, commit, nextStart, finish } = handCommit()
  const batcher = new Batcher<string, string>(commit, LIMITS)
  const firstStart = nextStart()
  const first = ['a', 'b'].map((item) => batcher.submit(item))
  await firstStart
  const second = ['c', 'd', 'e'].map((item) => batcher.submit(item))
  assert.deepEqual(batches, [['a', 'b']])
  assert.equal(batcher.waiting, 3)
  const secondStart = nextStart()
  finish(0)
  assert.deepEqual(await Promise.all(first), ['a!', 'b!'])
  await secondStart
  finish(1)
  assert.deepEqual(await Promise.all(second), ['c!', 'd!', 'e!'])
  assert.deepEqual(batches, [
    ['a', 'b'],
    ['c', 'd', 'e'],
  ])
})

test('no caller gets a result before the commit with its item has returned', async () => {
  const { commit, nextStart, finish } = handCommit()
  await using batcher = new Batcher<string, string>(commit, { ...LIMITS, itemsPerBatchMax: 1 })
  const completed: string[] = []
  const firstStart = nextStart()
  const calls = ['a', 'b'].map(async (item) => completed.push(await batcher.submit(item)))
  await firstStart
  assert.deepEqual(completed, [])
  const secondStart = nextStart()
  finish(0)
  await secondStart
  assert.deepEqual(completed, ['a!'])
  finish(1)
  await Promise.all(calls)
})

test('rejects calls beyond the queue limit immediately with overloaded', async () => {
  const { commit, nextStart, finish } = handCommit()
  await using batcher = new Batcher<string, string>(commit, {
    ...LIMITS,
    waitingMin: 2,
    waitingMax: 2,
  })
  const firstStart = nextStart()
  const first = batcher.submit('in flight')
  await firstStart
  const waiting = ['b', 'c'].map((item) => batcher.submit(item))
  assert.equal(batcher.isFull(''), true)
  await assert.rejects(batcher.submit('d'), isOverloaded)
  await assert.rejects(batcher.submitAll(['e']), isOverloaded)
  assert.equal(batcher.waiting, 2)
  const secondStart = nextStart()
  finish(0)
  await secondStart
  assert.equal(batcher.isFull(''), false, 'there is room as soon as the next batch has started')
  finish(1)
  assert.deepEqual(await Promise.all([first, ...waiting]), ['in flight!', 'b!', 'c!'])
})

test('rejects calls that would wait too long at the current speed', async (t) => {
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const { commit, nextStart, finish } = handCommit()
  await using batcher = new Batcher<string, string>(commit, {
    ...LIMITS,
    waitingMin: 2,
    waitMsMax: 50,
  })
  assert.equal(batcher.isFull('', 100), false, 'nothing is known yet')
  const firstStart = nextStart()
  const first = batcher.submit('a')
  await firstStart
  nowMs += 10
  finish(0)
  await first
  const secondStart = nextStart()
  const second = batcher.submit('b')
  await secondStart
  // At one item per 10 ms, five more items finish within 50 ms and the sixth does not.
  const waiting = ['c', 'd', 'e', 'f', 'g'].map((item) => batcher.submit(item))
  await assert.rejects(batcher.submit('h'), isOverloaded)
  const thirdStart = nextStart()
  nowMs += 10
  finish(1)
  await thirdStart
  finish(2)
  assert.equal((await Promise.all([second, ...waiting])).length, 6)
})

test('submitAll accepts all items or none, and returns one result per item, in order', async () => {
  const { batches, commit, nextStart, finish, fail } = handCommit()
  await using batcher = new Batcher<string, string>(commit, {
    ...LIMITS,
    itemsPerBatchMax: 2,
    waitingMin: 4,
    waitingMax: 4,
  })
  const firstStart = nextStart()
  const first = batcher.submit('a')
  await firstStart
  const second = batcher.submitAll(['b', 'c', 'd'])
  await assert.rejects(batcher.submitAll(['e', 'f']), isOverloaded)
  assert.equal(batcher.waiting, 3, 'not even one of the refused waits')
  let start = nextStart()
  finish(0)
  await start
  start = nextStart()
  finish(1)
  await start
  const reason = new Error('commit refused')
  fail(2, reason)
  assert.deepEqual(await second, [
    { status: 'fulfilled', value: 'b!' },
    { status: 'fulfilled', value: 'c!' },
    { status: 'rejected', reason },
  ])
  assert.equal(await first, 'a!')
  assert.deepEqual(batches, [['a'], ['b', 'c'], ['d']])
})

test('an empty queue accepts a call of any size, and an empty call returns no results', async () => {
  await using batcher = new Batcher<string, string>(async (items) => items, {
    ...LIMITS,
    itemsPerBatchMax: 2,
    waitingMin: 2,
    waitingMax: 2,
  })
  assert.equal((await batcher.submitAll(['a', 'b', 'c', 'd', 'e'])).length, 5)
  assert.deepEqual(await batcher.submitAll([]), [])
})

test('every call gets a result, whenever it arrives', async () => {
  const anyWave = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 12 })
  await fc.assert(
    fc.asyncProperty(anyWave, fc.integer({ min: 1, max: 3 }), async (wave, itemsPerBatchMax) => {
      let committed = 0
      await using batcher = new Batcher<string, string>(
        async (items) => {
          committed += items.length
          return items
        },
        { ...LIMITS, itemsPerBatchMax },
      )
      const calls: Promise<string>[] = []
      for (const turns of wave) {
        // Wait this many microtasks. Around the end of a drain, each one makes a difference.
        for (let turn = 0; turn < turns; turn += 1) await Promise.resolve()
        if (turns === 4) await new Promise(setImmediate)
        calls.push(batcher.submit('a'))
      }
      await Promise.all(calls)
      assert.equal(committed, wave.length)
    }),
  )
})

test('a call from the callback of the last one starts the writer again', async () => {
  await using batcher = new Batcher<number, number>(async (items) => items, LIMITS)
  let last = 0
  for (let call = 1; call <= 50; call += 1) last = await batcher.submit(call)
  assert.equal(last, 50)
})

test('rejectWaiting fails waiting calls without affecting the batch in flight', async () => {
  const { batches, commit, nextStart, finish } = handCommit()
  await using batcher = new Batcher<string, string>(commit, LIMITS)
  const firstStart = nextStart()
  const first = batcher.submit('a')
  await firstStart
  const second = batcher.submit('b')
  batcher.rejectWaiting(new ApiError('unavailable'))
  await assert.rejects(second, /The database is unavailable/)
  finish(0)
  assert.equal(await first, 'a!')
  assert.deepEqual(batches, [['a']])
})

test('disposal completes all accepted calls and accepts no more', async () => {
  const { commit, nextStart, finish } = handCommit()
  const batcher = new Batcher<string, string>(commit, { ...LIMITS, itemsPerBatchMax: 1 })
  const firstStart = nextStart()
  const calls = ['a', 'b'].map((item) => batcher.submit(item))
  await firstStart
  let isOver = false
  const disposal = batcher[Symbol.asyncDispose]().then(() => (isOver = true))
  await assert.rejects(batcher.submit('c'), isOverloaded)
  const secondStart = nextStart()
  finish(0)
  await secondStart
  assert.equal(isOver, false, 'one is still in flight')
  finish(1)
  assert.deepEqual(await Promise.all(calls), ['a!', 'b!'])
  await disposal
})

test('splits large items into separate batches, and rejects calls beyond the byte limit', async () => {
  const batches: string[][] = []
  await using batcher = new Batcher<string, string>(
    async (items) => {
      batches.push(items)
      return items
    },
    LIMITS,
    { ...WEIGHTS, bytesPerOwnerMax: () => 4, bytesPerBatchMax: 4, waitingBytesMax: 12 },
  )
  const letIn = ['aaaaaaaa', 'b', 'cc', 'dd'].map((item) => batcher.submit(item))
  await assert.rejects(batcher.submit('e'), { code: 'overloaded' })
  await Promise.all(letIn)
  assert.deepEqual(batches, [['aaaaaaaa'], ['b', 'cc'], ['dd']])
  assert.equal(await batcher.submit('f'), 'f')
})

test('limits an owner to half of the waiting bytes', async () => {
  const { commit, nextStart, finish } = handCommit()
  const weights = { ...WEIGHTS, waitingBytesMax: 12 }
  await using batcher = new Batcher<string, string>(commit, LIMITS, weights)
  const first = nextStart()
  const inFlight = batcher.submit('a0')
  await first
  const letIn = ['a1__', 'a2__'].map((item) => batcher.submit(item))
  await assert.rejects(batcher.submit('a3'), isOverloaded)
  await assert.rejects(batcher.submitAll(['a4', 'a5']), isOverloaded)
  letIn.push(batcher.submit('b1__'))
  assert.equal(batcher.waiting, 3)
  for (const index of [0, 1, 2]) {
    const next = nextStart()
    finish(index)
    if (index < 2) await next
  }
  assert.deepEqual(await Promise.all([inFlight, ...letIn]), ['a0!', 'a1__!', 'a2__!', 'b1__!'])
})

test('limits an owner of large items to its share of a batch, and fills the rest with other items', async () => {
  const { batches, commit, nextStart, finish } = handCommit()
  await using batcher = new Batcher<string, string>(commit, LIMITS, WEIGHTS)
  const first = nextStart()
  const items = ['a1__', 'a2__', 'a3', 'a4__', 'b1', 'c1__', 'c2', 'b2', 'c3']
  const results = items.map((item) => batcher.submit(item))
  await first
  for (const index of [0, 1, 2, 3]) {
    const next = nextStart()
    finish(index)
    if (index < 3) await next
  }
  await Promise.all(results)
  assert.deepEqual(batches, [['a1__', 'b1', 'b2', 'c1__'], ['a2__', 'c2', 'c3'], ['a3'], ['a4__']])
})

test('the share of an owner in a batch can change from batch to batch', async () => {
  const { batches, commit, nextStart, finish } = handCommit()
  let bytesMax = 8
  const weights = { ...WEIGHTS, bytesPerOwnerMax: () => bytesMax, bytesPerBatchMax: 1_000 }
  await using batcher = new Batcher<string, string>(commit, LIMITS, weights)
  const first = nextStart()
  const results = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7'].map((item) => batcher.submit(item))
  await first
  bytesMax = 4
  for (const index of [0, 1, 2]) {
    const next = nextStart()
    finish(index)
    if (index < 2) await next
  }
  await Promise.all(results)
  assert.deepEqual(batches, [['a1', 'a2', 'a3', 'a4'], ['a5', 'a6'], ['a7']])
})

test('rejects an owner that has filled the queue, and serves others in the next batch', async () => {
  const { batches, commit, nextStart, finish } = handCommit()
  const limits = { ...LIMITS, itemsPerBatchMax: 4, waitingMin: 8, waitingMax: 8 }
  const weights = { ...WEIGHTS, bytesPerOwnerMax: () => 1_000, bytesPerBatchMax: 1_000 }
  await using batcher = new Batcher<string, string>(commit, limits, weights)
  const first = nextStart()
  const results = ['a0', 'a1', 'a2', 'a3'].map((item) => batcher.submit(item))
  await first
  // The second batch is ready. Behind it, there is room for four more items of one owner.
  results.push(
    ...['a4', 'a5', 'a6', 'a7', 'a8', 'a9', 'aA', 'aB'].map((item) => batcher.submit(item)),
  )
  await assert.rejects(batcher.submit('aC'), isOverloaded)
  results.push(batcher.submit('b0'), batcher.submit('c0'))
  await assert.rejects(batcher.submitAll(['c1', 'c2', 'c3', 'c4']), isOverloaded)
  for (const index of [0, 1, 2, 3]) {
    const next = nextStart()
    finish(index)
    if (index < 3) await next
  }
  await Promise.all(results)
  assert.deepEqual(batches.slice(2), [
    ['a8', 'b0', 'c0', 'a9'],
    ['aA', 'aB'],
  ])
})

test('commits every item once, and the items of an owner in order', async () => {
  const anyItems = fc.array(
    fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('', '__', '________')),
    { maxLength: 60 },
  )
  await fc.assert(
    fc.asyncProperty(anyItems, fc.integer({ min: 1, max: 8 }), async (drawn, itemsPerBatchMax) => {
      const items = drawn.map(([owner, rest], nth) => `${owner}${nth}${rest}`)
      const committed: string[] = []
      await using batcher = new Batcher<string, string>(
        async (batch) => {
          committed.push(...batch)
          return batch
        },
        { ...LIMITS, itemsPerBatchMax },
        WEIGHTS,
      )
      assert.deepEqual(await Promise.all(items.map((item) => batcher.submit(item))), items)
      assert.equal(committed.length, items.length)
      for (const owner of ['a', 'b', 'c']) {
        const ofOwner = (all: readonly string[]) => all.filter((item) => item.startsWith(owner))
        assert.deepEqual(ofOwner(committed), ofOwner(items))
      }
      assert.equal(batcher.waiting, 0)
      assert(!batcher.isFull('a'))
    }),
    { numRuns: rounds(60, 200) },
  )
})

test('prepares a full batch once while another is in flight, then commits it', async () => {
  const { batches, commit, nextStart, finish } = handCommit()
  const prepared: string[][] = []
  await using batcher = new Batcher<string, string>(
    commit,
    { ...LIMITS, itemsPerBatchMax: 2 },
    undefined,
    (items) => {
      prepared.push(items)
      return () => commit(items)
    },
  )
  const firstStarts = nextStart()
  const results = ['a', 'b'].map((item) => batcher.submit(item))
  await firstStarts
  results.push(batcher.submit('c'))
  assert.deepEqual(prepared, [], 'a batch with room waits for more items')
  results.push(...['d', 'e', 'f', 'g'].map((item) => batcher.submit(item)))
  assert.deepEqual(prepared, [['c', 'd']])
  assert.equal(batcher.waiting, 5)
  const secondStarts = nextStart()
  finish(0)
  await secondStarts
  assert.equal(batches[1], prepared[0], 'the same array that was prepared')
  assert.deepEqual(prepared[1], ['e', 'f'])
  const thirdStarts = nextStart()
  finish(1)
  await thirdStarts
  const fourthStarts = nextStart()
  finish(2)
  await fourthStarts
  finish(3)
  assert.deepEqual(await Promise.all(results), ['a!', 'b!', 'c!', 'd!', 'e!', 'f!', 'g!'])
  assert.deepEqual(batches, [['a', 'b'], ['c', 'd'], ['e', 'f'], ['g']])
})

test('rejectWaiting also fails calls whose batch was prepared', async () => {
  const { commit, nextStart, finish } = handCommit()
  const batcher = new Batcher<string, string>(commit, { ...LIMITS, itemsPerBatchMax: 1 })
  const starts = nextStart()
  const first = batcher.submit('a')
  await starts
  const others = Promise.allSettled(['b', 'c'].map((item) => batcher.submit(item)))
  const reason = new Error('gone')
  batcher.rejectWaiting(reason)
  assert.deepEqual(await others, [
    { status: 'rejected', reason },
    { status: 'rejected', reason },
  ])
  assert.equal(batcher.waiting, 0)
  finish(0)
  assert.equal(await first, 'a!')
  await batcher[Symbol.asyncDispose]()
})

test('the age of the queue is that of its oldest item, from any caller', async (t) => {
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const { commit, finish, nextStart } = handCommit()
  await using batcher = new Batcher<string, string>(commit, LIMITS, WEIGHTS)
  assert.equal(batcher.waitedMs(), 0)
  const started = nextStart()
  const first = batcher.submit('a')
  await started
  assert.equal(batcher.waitedMs(), 0)
  nowMs = 1_000
  const second = batcher.submit('b')
  nowMs = 3_000
  const third = batcher.submit('a')
  nowMs = 4_000
  assert.equal(batcher.waitedMs(), 3_000)
  const startedNext = nextStart()
  finish(0)
  await startedNext
  assert.equal(batcher.waitedMs(), 0)
  finish(1)
  assert.deepEqual(await Promise.all([first, second, third]), ['a!', 'b!', 'a!'])
})
