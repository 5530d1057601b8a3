import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changedFields } from './changed-fields.ts'

const PRESENT = { name: 'Old', query: { text: 'a', range: '24h' }, projectId: null, secret: 's' }

test('reports exactly the fields whose values change', () => {
  assert.deepEqual(changedFields(PRESENT, { name: 'New', projectId: null }), {
    before: { name: 'Old' },
    after: { name: 'New' },
  })
  assert.deepEqual(changedFields(PRESENT, { query: { text: 'b', range: '24h' } }), {
    before: { query: { text: 'a', range: '24h' } },
    after: { query: { text: 'b', range: '24h' } },
  })
})

test('returns null if all values are the same, in any key order', () => {
  assert.equal(changedFields(PRESENT, { query: { range: '24h', text: 'a' }, name: 'Old' }), null)
  assert.equal(changedFields(PRESENT, {}), null)
})
