import assert from 'node:assert/strict'
import { test } from 'node:test'
import { orderTerms } from './metadata-term.ts'

test('equivalent terms are ordered equally', () => {
  const one = orderTerms([
    { path: 'b', values: ['2', '1', '2'] },
    { path: 'a', values: null },
    { path: 'a', values: null },
  ])
  const other = orderTerms([
    { path: 'a', values: null },
    { path: 'b', values: ['1', '2'] },
  ])
  assert.deepEqual(one, other)
  assert.equal(orderTerms([]), null)
})
