import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { manualClock } from '../../../test/harness/timing/clock.ts'
import { TokenBuckets } from './token-bucket.ts'

const RATE = { perSecond: 10, capacity: 10, cost: 1 }

function bucketsWithClock(bucketsMax = 100) {
  const time = manualClock(1_000_000)
  return { ...time, buckets: new TokenBuckets({ clock: time.clock, bucketsMax }) }
}

test('a full bucket allows one second of calls at once, then rejects', () => {
  const { buckets } = bucketsWithClock()
  const verdicts = Array.from({ length: 12 }, () => buckets.take('key', RATE))
  assert.deepEqual(
    verdicts.map(({ isAllowed }) => isAllowed),
    [...Array(10).fill(true), false, false],
  )
  assert.deepEqual(verdicts[0], {
    isAllowed: true,
    limit: 10,
    remaining: 9,
    resetSeconds: 1,
    retryAfterSeconds: 1,
  })
  assert.equal(verdicts[11]?.remaining, 0)
})

test('refills one token at a time, up to the capacity', () => {
  const { buckets, advance } = bucketsWithClock()
  for (let call = 0; call < 10; call++) buckets.take('key', RATE)
  advance(99)
  assert.equal(buckets.take('key', RATE).isAllowed, false)
  advance(1)
  assert.equal(buckets.take('key', RATE).isAllowed, true)
  assert.equal(buckets.take('key', RATE).isAllowed, false)
  advance(3_600_000)
  assert.equal(buckets.take('key', RATE).remaining, 9)
})

test('calls under one name use no tokens of another', () => {
  const { buckets } = bucketsWithClock()
  for (let call = 0; call < 11; call++) buckets.take('noisy', RATE)
  assert.equal(buckets.take('quiet', RATE).remaining, 9)
})

test('a batch larger than the capacity passes a full bucket and is paid off later', () => {
  const { buckets, advance } = bucketsWithClock()
  const batch = { ...RATE, cost: 25 }
  const first = buckets.take('key', batch)
  assert.deepEqual([first.isAllowed, first.remaining, first.resetSeconds], [true, 0, 3])
  assert.equal(buckets.take('key', RATE).retryAfterSeconds, 2)
  advance(1_599)
  assert.equal(buckets.take('key', RATE).isAllowed, false)
  advance(1)
  assert.equal(buckets.take('key', RATE).isAllowed, true)
  assert.equal(
    buckets.take('key', batch).isAllowed,
    false,
    'the next batch waits for a full bucket',
  )
})

test('a batch that has paid its first token passes a full bucket and pays the rest', () => {
  const { buckets } = bucketsWithClock()
  for (const [name, cost] of [
    ['at capacity', 10],
    ['above capacity', 25],
  ] as const) {
    buckets.take(name, RATE)
    const verdict = buckets.take(name, { ...RATE, cost, paid: 1 })
    assert.equal(verdict.isAllowed, true, name)
    assert.equal(verdict.resetSeconds, Math.ceil(cost / RATE.perSecond))
    assert.equal(buckets.take(name, RATE).isAllowed, false)
  }
  buckets.take('not full', { ...RATE, cost: 2 })
  assert.equal(buckets.take('not full', { ...RATE, cost: 25, paid: 1 }).isAllowed, false)
  assert.equal(buckets.take('not full', RATE).remaining, 7, 'a refusal takes nothing')
})

test('discards the oldest bucket beyond the limit, so that it starts full again', () => {
  const { buckets } = bucketsWithClock(2)
  for (let call = 0; call < 11; call++) buckets.take('first', RATE)
  buckets.take('second', RATE)
  buckets.take('third', RATE)
  assert.equal(buckets.take('first', RATE).isAllowed, true)
})

test('allows at most capacity plus refill in any window', () => {
  const step = fc.record({
    pauseMs: fc.integer({ min: 0, max: 500 }),
    cost: fc.integer({ min: 1, max: 10 }),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { buckets, advance } = bucketsWithClock()
      let elapsedMs = 0
      let spent = 0
      for (const { pauseMs, cost } of steps) {
        advance(pauseMs)
        elapsedMs += pauseMs
        if (buckets.take('key', { ...RATE, cost }).isAllowed) spent += cost
      }
      assert(spent <= RATE.capacity + (elapsedMs / 1_000) * RATE.perSecond + 1e-6)
    }),
  )
})
