import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/harness/timing/clock.ts'
import { ApiError } from '../../errors.ts'
import { BODY_RATE, BodyBudget, type BodyLease } from './body-budget.ts'

const LIMITS = {
  callerBodiesMax: 2,
  callerBytesMax: 40,
  nodeBytesMax: 100,
  reservedBytes: 20,
  smallBytesMax: 5,
}

function open(budget: BodyBudget, caller: string): BodyLease {
  const lease = budget.open(caller)
  assert(!(lease instanceof ApiError))
  return lease
}

test('limits a caller to its share, which is free again when a body ends', () => {
  const budget = new BodyBudget(LIMITS)
  const first = open(budget, 'a')
  assert.equal(first.grow(30), null)
  const second = open(budget, 'a')
  assert.equal(second.grow(11)?.code, 'rate_limited')
  assert.equal(second.grow(10), null)
  first.release()
  first.release()
  assert.equal(budget.bytes, 10)
  assert.equal(second.grow(30), null)
})

test('callers with large bodies cannot use up the budget of the node', () => {
  const budget = new BodyBudget(LIMITS)
  for (const caller of ['a', 'b']) assert.equal(open(budget, caller).grow(40), null)
  const large = open(budget, 'c').grow(6)
  assert.deepEqual([large?.code, large?.retryAfterSeconds], ['overloaded', 1])
  for (const caller of ['d', 'e', 'f', 'g']) assert.equal(open(budget, caller).grow(5), null)
  assert.equal(open(budget, 'h').grow(1)?.code, 'overloaded')
  assert.equal(budget.bytes, 100)
})

test('limits the number of concurrent bodies per caller, however small they are', () => {
  const budget = new BodyBudget(LIMITS)
  const first = open(budget, 'a')
  open(budget, 'a')
  const third = budget.open('a')
  assert(third instanceof ApiError)
  assert.equal(third.code, 'rate_limited')
  open(budget, 'b')
  first.release()
  first.release()
  open(budget, 'a')
  assert(budget.open('a') instanceof ApiError)
})

test('pauses a caller that sends more than its rate, and no other', () => {
  const { clock, advance } = manualClock(0)
  const budget = new BodyBudget(LIMITS, clock)
  const [busy, other] = [open(budget, 'a'), open(budget, 'b')]
  assert.equal(busy.receive(BODY_RATE.perSecond), 0)
  assert.equal(busy.receive(BODY_RATE.perSecond / 2), 500)
  assert.equal(other.receive(1_000), 0)
  advance(500)
  assert.equal(busy.receive(0), 0)
})
