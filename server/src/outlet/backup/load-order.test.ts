import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inLoadOrder } from './load-order.ts'

const named = (...names: string[]) => names.map((name) => ({ name }))

test('a table comes after all tables that it refers to', () => {
  const references = [
    { name: 'a', refersTo: 'b' },
    { name: 'b', refersTo: 'c' },
    { name: 'a', refersTo: 'left out' },
  ]
  assert.deepEqual(inLoadOrder(named('a', 'b', 'c', 'd'), references), named('c', 'd', 'b', 'a'))
})

test('throws if tables refer to each other, instead of looping forever', () => {
  const references = [
    { name: 'a', refersTo: 'b' },
    { name: 'b', refersTo: 'a' },
  ]
  assert.throws(() => inLoadOrder(named('a', 'b'), references), /refer to each other/)
})
