import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { manualClock } from '../../../test/harness/timing/clock.ts'
import { TokenSlots } from './token-slots.ts'

/** Two per minute, as for login attempts per account. */
const RATE = { perSecond: 1 / 30, capacity: 30 }

function slotsWithClock(rate = RATE) {
  const time = manualClock(0)
  return { ...time, slots: new TokenSlots(time.clock, rate) }
}

function useUp(slots: TokenSlots, name: string): number {
  let taken = 0
  while (slots.take(name) === 0) taken += 1
  return taken
}

test('a bucket allows its capacity at once, then one token at a time', () => {
  const { slots, advance } = slotsWithClock()
  assert.equal(useUp(slots, 'caller'), 30)
  assert.equal(slots.take('caller'), 30_000)
  advance(29_999)
  assert.equal(slots.take('caller'), 1)
  advance(1)
  assert.equal(slots.take('caller'), 0)
  assert.equal(slots.take('caller'), 30_000)
  advance(86_400_000)
  assert.equal(useUp(slots, 'caller'), 30)
})

test('no number of other names gives an exhausted name another token', () => {
  const { slots } = slotsWithClock()
  useUp(slots, 'victim')
  for (let other = 0; other < 100_000; other += 1) slots.take(`other ${other}`)
  assert.equal(slots.take('victim'), 30_000)
})

test('an exhausted name uses no tokens of nearly all others', () => {
  const { slots } = slotsWithClock()
  useUp(slots, 'noisy')
  const refused = Array.from({ length: 1_000 }, (_, index) => slots.take(`quiet ${index}`))
  // The chance that two of a thousand share the slot is one in nine thousand.
  assert(refused.filter((waitMs) => waitMs > 0).length < 2)
})

test('a returned token can be used again, up to the capacity', () => {
  const { slots } = slotsWithClock()
  useUp(slots, 'caller')
  slots.refund('caller')
  assert.equal(useUp(slots, 'caller'), 1)
  for (let times = 0; times < 60; times += 1) slots.refund('caller')
  assert.equal(useUp(slots, 'caller'), 30)
})

test('allows at most capacity plus refill in any window', () => {
  const pauses = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 200 })
  fc.assert(
    fc.property(pauses, (pausesMs) => {
      const { slots, advance } = slotsWithClock({ perSecond: 0.5, capacity: 5 })
      let elapsedMs = 0
      let taken = 0
      for (const pauseMs of pausesMs) {
        advance(pauseMs)
        elapsedMs += pauseMs
        if (slots.take('caller') === 0) taken += 1
      }
      assert(taken <= 5 + elapsedMs / 2_000)
    }),
  )
})
