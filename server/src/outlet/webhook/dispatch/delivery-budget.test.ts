import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../platform/id.ts'
import { DeliveryBudget } from './delivery-budget.ts'

const LIMITS = {
  heldMax: 16,
  heldPerCompanyMax: 8,
  firstHeldMax: 2,
  heldBytesMax: 1_000,
  heldBytesPerCompanyMax: 250,
  firstHeldBytesMax: 50,
  heldBytesHardMax: 1_100,
}

const newCompany = () => newId<'company'>()
const body = (length: number) => ({ length })

/** Fills the node to `bytes` with four companies that have one body each. */
function fill(budget: DeliveryBudget, bytes: number): void {
  for (let companies = 0; companies < 4; companies += 1) {
    assert.equal(budget.add(newCompany(), [body(bytes / 4)]), 1)
  }
}

test('limits a company to its share of deliveries and bytes', () => {
  const budget = new DeliveryBudget(LIMITS)
  const company = newCompany()
  assert.equal(budget.roomFor(company, 1), 8)
  assert.equal(budget.roomFor(company, 50), 5)
  assert.equal(budget.add(company, [body(100), body(100), body(100)]), 2)
  assert.equal(budget.roomFor(company, 50), 1)
  assert.equal(budget.roomFor(company, 51), 0)
  assert.equal(budget.roomFor(newCompany(), 50), 5)
  budget.remove(company, body(100))
  budget.remove(company, body(100))
  assert.equal(budget.roomFor(company, 50), 5)
  assert.deepEqual([budget.count, budget.bytes], [0, 0])
})

test('a company without deliveries in progress gets its first ones on a full node', () => {
  const budget = new DeliveryBudget(LIMITS)
  fill(budget, 1_000)
  const company = newCompany()
  assert.equal(budget.roomFor(company, 1), 8)
  assert.equal(budget.roomFor(company, 25), 2)
  assert.equal(budget.add(company, [body(25), body(25), body(25)]), 2)
  assert.equal(budget.roomFor(company, 1), 0)
})

test('first deliveries never exceed the hard limit of the node', () => {
  const budget = new DeliveryBudget(LIMITS)
  fill(budget, 1_000)
  assert.equal(budget.add(newCompany(), [body(50)]), 1)
  assert.equal(budget.add(newCompany(), [body(50)]), 1)
  assert.equal(budget.bytes, LIMITS.heldBytesHardMax)
  assert.equal(budget.roomFor(newCompany(), 1), 0)
  assert.equal(budget.add(newCompany(), [body(1)]), 0)
})

test('sends a body that is larger than its company’s share on its own', () => {
  const budget = new DeliveryBudget(LIMITS)
  const company = newCompany()
  assert.equal(budget.roomFor(company, 300), 1)
  assert.equal(budget.add(company, [body(300), body(1)]), 1)
  assert.equal(budget.roomFor(company, 1), 0)
})

test('space that is reserved for a fetch cannot be used twice', () => {
  const budget = new DeliveryBudget(LIMITS)
  const company = newCompany()
  {
    using _reserved = budget.reserve(company, { count: 4, bytes: 200 })
    assert.equal(budget.roomFor(company, 50), 1)
    assert.equal(budget.roomFor(company, 1), 4)
    assert.equal(budget.add(company, [body(50), body(50), body(50), body(50)]), 4)
  }
  assert.equal(budget.roomFor(company, 50), 1)
  for (let times = 0; times < 4; times += 1) budget.remove(company, body(50))
  assert.equal(budget.roomFor(company, 50), 5)
})
