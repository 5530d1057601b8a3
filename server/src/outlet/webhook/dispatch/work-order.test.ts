import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../../platform/id.ts'
import { WorkOrder } from './work-order.ts'

const companyId = newId<'company'>()
const works = Array.from({ length: 4 }, () => ({ companyId, webhookId: newId<'webhook'>() }))
const [first, second, third, fourth] = works
assert(first && second && third && fourth)

test('the next round starts after the last webhook that got deliveries', () => {
  const order = new WorkOrder()
  order.noteLeased(first)
  order.noteLeased(second)
  assert.equal(order.endRound(works, { hasAll: true }), true)
  assert.equal(order.cursor.webhookIds.get(companyId), second.webhookId)
})

test('a round in which no webhook got deliveries continues after the last one served', () => {
  const order = new WorkOrder()
  order.noteLeased(first)
  order.endRound([first, second], { hasAll: false })
  assert.equal(order.endRound([second, third], { hasAll: false }), false)
  assert.equal(order.cursor.webhookIds.get(companyId), third.webhookId)
})

test('the next round starts after the company that was served last', () => {
  const order = new WorkOrder()
  const other = { companyId: newId<'company'>(), webhookId: newId<'webhook'>() }
  order.endRound([first, other], { hasAll: false })
  assert.equal(order.cursor.companyId, other.companyId)
})

test('forgets companies without work, unless a round was cut short', () => {
  const order = new WorkOrder()
  order.endRound([first], { hasAll: false })
  order.endRound([], { hasAll: false })
  assert.equal(order.cursor.webhookIds.size, 1)
  order.endRound([], { hasAll: true })
  assert.equal(order.cursor.webhookIds.size, 0)
})
