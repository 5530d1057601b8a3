import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BodyBudget } from './body-budget.ts'

const LIMITS = { callerBytesMax: 40, nodeBytesMax: 100, reservedBytes: 20, smallBytesMax: 5 }

test('a caller cannot use more than its share, and gets it back when a body ends', () => {
  const budget = new BodyBudget(LIMITS)
  const first = budget.open('a')
  assert.equal(first.grow(30), null)
  const second = budget.open('a')
  assert.equal(second.grow(11)?.code, 'rate_limited')
  assert.equal(second.grow(10), null)
  first.release()
  first.release()
  assert.equal(budget.bytes, 10)
  assert.equal(second.grow(30), null)
})

test('callers with large bodies cannot use up the node', () => {
  const budget = new BodyBudget(LIMITS)
  for (const caller of ['a', 'b']) assert.equal(budget.open(caller).grow(40), null)
  const large = budget.open('c').grow(6)
  assert.deepEqual([large?.code, large?.retryAfterSeconds], ['overloaded', 1])
  for (const caller of ['d', 'e', 'f', 'g']) assert.equal(budget.open(caller).grow(5), null)
  assert.equal(budget.open('h').grow(1)?.code, 'overloaded')
  assert.equal(budget.bytes, 100)
})
