import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OutputBudget } from './output-budget.ts'

const LIMITS = {
  companyBytesMax: 40,
  companySmallBytes: 10,
  nodeBytesMax: 100,
  reservedBytes: 20,
  smallBytesMax: 10,
}
const large = (bytes: number) => ({ bytes, isLarge: true })
const small = (bytes: number) => ({ bytes, isLarge: false })

test('a company with much unread output gets small responses but no large ones', () => {
  const budget = new OutputBudget(LIMITS)
  budget.hold('a', 30)
  assert.equal(budget.refusal('a', large(10)), null)
  const refused = budget.refusal('a', large(11))
  assert.deepEqual([refused?.code, refused?.retryAfterSeconds], ['rate_limited', 1])
  assert.equal(budget.refusal('a', small(20)), null)
  assert.equal(budget.refusal('a', small(21))?.code, 'rate_limited')
  assert.equal(budget.refusal('b', large(11)), null)
})

test('a response that is released twice counts only once', () => {
  const budget = new OutputBudget(LIMITS)
  const release = budget.hold('a', 30)
  budget.hold('a', 10)
  release()
  release()
  assert.equal(budget.bytes, 10)
  assert.equal(budget.refusal('a', large(30)), null)
  assert.equal(budget.refusal('a', large(31))?.code, 'rate_limited')
})

test('companies with much unread output cannot use up the budget of the node', () => {
  const budget = new OutputBudget(LIMITS)
  budget.hold('a', 40)
  budget.hold('b', 35)
  const heavy = budget.refusal('c', large(11))
  assert.deepEqual([heavy?.code, heavy?.retryAfterSeconds], ['overloaded', 1])
  for (const company of ['d', 'e']) {
    assert.equal(budget.refusal(company, large(10)), null)
    budget.hold(company, 10)
  }
  assert.equal(budget.refusal('f', large(10))?.code, 'overloaded')
  assert.equal(budget.refusal('b', small(6))?.code, 'overloaded')
  assert.equal(budget.refusal('f', small(10)), null)
})
