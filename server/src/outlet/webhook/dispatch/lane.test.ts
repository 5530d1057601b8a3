import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { rounds } from '../../../../test/harness/timing/fault-rounds.ts'
import { Lane } from './lane.ts'
import { PROBE_AFTER_FAILURES } from './settle-store.ts'

const GOOD = { isGood: true, durationMs: 20 }
const SLOW = { isGood: true, durationMs: 2_001 }
const BAD = { isGood: false, durationMs: 20 }

function makeLane(): { lane: Lane<number>; sent: number[] } {
  const sent: number[] = []
  return { lane: new Lane<number>((work) => void sent.push(work)), sent }
}

const numbers = (count: number, from = 0): number[] =>
  Array.from({ length: count }, (_, index) => from + index)

/** Sends `count` deliveries, one after the other, and ends each the same way. */
function sendAndEnd(lane: Lane<number>, count: number, end: typeof GOOD): void {
  for (const work of numbers(count)) {
    lane.add([work])
    lane.noteEnd(end)
  }
}

test('sends 8 deliveries at once, in order, and the next one when one ends', () => {
  const { lane, sent } = makeLane()
  lane.add(numbers(12))
  assert.deepEqual(sent, numbers(8))
  assert.equal(lane.heldCount, 12)
  lane.noteEnd(GOOD)
  assert.deepEqual(sent, numbers(9))
  assert.equal(lane.heldCount, 11)
})

test('sends more at once to a fast receiver, one more per four successes, up to 64', () => {
  const { lane } = makeLane()
  sendAndEnd(lane, 3, GOOD)
  assert.equal(lane.limit, 8)
  sendAndEnd(lane, 1, GOOD)
  assert.equal(lane.limit, 9)
  sendAndEnd(lane, 4 * (64 - 9) - 1, GOOD)
  assert.equal(lane.limit, 63)
  sendAndEnd(lane, 100, GOOD)
  assert.equal(lane.limit, 64)
})

test('does not increase the concurrency of a slow receiver', () => {
  const { lane } = makeLane()
  sendAndEnd(lane, 40, SLOW)
  assert.equal(lane.limit, 8)
})

test('each failure halves the concurrency, down to one, and successes raise it again', () => {
  const { lane } = makeLane()
  const limits = [4, 2, 1, 1, 1]
  for (const limit of limits) {
    sendAndEnd(lane, 1, BAD)
    assert.equal(lane.limit, limit)
  }
  sendAndEnd(lane, 4, GOOD)
  assert.equal(lane.limit, 2)
})

test('sends no more until deliveries above the lowered limit have ended', () => {
  const { lane, sent } = makeLane()
  lane.add(numbers(16))
  lane.noteEnd(BAD)
  assert.equal(lane.limit, 4)
  for (let ended = 1; ended < 4; ended += 1) lane.noteEnd(GOOD)
  assert.equal(sent.length, 8)
  lane.noteEnd(SLOW)
  assert.equal(sent.length, 9)
})

test('fetches more deliveries when at most the limit is left, up to twice the limit', () => {
  const { lane } = makeLane()
  assert.equal(lane.room(), 16)
  lane.add(numbers(7))
  assert.equal(lane.room(), 9)
  lane.add(numbers(1))
  assert.equal(lane.room(), 8)
  lane.add(numbers(1))
  assert.equal(lane.room(), 0)
  lane.add(numbers(7))
  assert.equal(lane.room(), 0)
})

test('sends a single delivery to a receiver that is probed, and fetches no others', () => {
  const { lane, sent } = makeLane()
  lane.noteFailureCount(PROBE_AFTER_FAILURES - 1)
  assert(!lane.isProbing)
  lane.noteFailureCount(PROBE_AFTER_FAILURES)
  assert(lane.isProbing)
  assert.equal(lane.room(), 1)
  lane.add([1])
  assert.deepEqual(sent, [1])
  assert.equal(lane.room(), 0)
  lane.noteEnd(BAD)
  assert.equal(lane.room(), 1)
  lane.noteFailureCount(0)
  assert.equal(lane.room(), 2 * lane.limit)
})

type Step =
  | { kind: 'add'; count: number }
  | { kind: 'end'; isGood: boolean; durationMs: number }
  | { kind: 'failures'; count: number }
  | { kind: 'take' }

type Outcome = { sent: number[]; taken: number[]; ended: number; added: number }

const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('add' as const), count: fc.integer({ min: 1, max: 40 }) }),
  fc.record({
    kind: fc.constant('end' as const),
    isGood: fc.boolean(),
    durationMs: fc.constantFrom(5, 5_000),
  }),
  fc.record({
    kind: fc.constant('end' as const),
    isGood: fc.constant(true),
    durationMs: fc.constant(5),
  }),
  fc.record({ kind: fc.constant('failures' as const), count: fc.constantFrom(0, 9, 10, 50) }),
  fc.record({ kind: fc.constant('take' as const) }),
)

test('never exceeds the concurrency, and never loses, repeats or reorders a delivery', () => {
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 200 }), (steps) => {
      const outcome: Outcome = { sent: [], taken: [], ended: 0, added: 0 }
      const lane = new Lane<number>((work) => {
        outcome.sent.push(work)
        assert(outcome.sent.length - outcome.ended <= lane.limit)
      })
      for (const step of steps) {
        apply(lane, step, outcome)
        assert(lane.limit >= 1 && lane.limit <= 64)
        assert.equal(lane.heldCount, outcome.added - outcome.ended - outcome.taken.length)
        assert(lane.room() + lane.heldCount <= 128 || lane.room() === 0)
        assert(
          lane.heldCount === 0 || outcome.sent.length > outcome.ended,
          'something is in flight',
        )
      }
      lane.noteFailureCount(0)
      while (lane.heldCount > 0) apply(lane, { kind: 'end', ...GOOD }, outcome)
      assert.deepEqual(
        outcome.sent,
        outcome.sent.toSorted((a, b) => a - b),
      )
      assert.deepEqual(
        [...outcome.sent, ...outcome.taken].toSorted((a, b) => a - b),
        numbers(outcome.added),
      )
    }),
    { numRuns: rounds(100, 300) },
  )
})

function apply(lane: Lane<number>, step: Step, outcome: Outcome): void {
  switch (step.kind) {
    case 'add': {
      const works = numbers(step.count, outcome.added)
      outcome.added += step.count
      lane.add(works)
      return
    }
    case 'end':
      if (outcome.sent.length === outcome.ended) return
      outcome.ended += 1
      lane.noteEnd(step)
      return
    case 'failures':
      lane.noteFailureCount(step.count)
      return
    case 'take':
      outcome.taken.push(...lane.takeReady())
      return
    default:
      step satisfies never
  }
}
