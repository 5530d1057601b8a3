import assert from 'node:assert/strict'
import { test } from 'node:test'
import { columnsOf, fitColumns } from '../src/pages/explorer/list/columns.ts'

test('columns drop by priority until the others fit, and time and action always stay', () => {
  const all = columnsOf(undefined, { isOfAll: false, sort: 'timestamp' })
  assert.deepEqual(fitColumns(all, 0), all)
  assert.deepEqual(fitColumns(all, 1_000), all)
  assert.deepEqual(fitColumns(all, 860), ['time', 'action', 'actor', 'resource', 'project'])
  assert.deepEqual(fitColumns(all, 780), ['time', 'action', 'actor', 'resource'])
  assert.deepEqual(fitColumns(all, 100), ['time', 'action'])
})

test('a list that is sorted by the time of receipt shows it, however narrow it is', () => {
  const sort = 'receivedAt'
  const all = columnsOf(undefined, { isOfAll: false, sort })
  assert.deepEqual(all.slice(0, 2), ['time', 'received'])
  assert.deepEqual(fitColumns(all, 100), ['time', 'received', 'action'])
  assert.deepEqual(columnsOf('action,seq', { isOfAll: false, sort }), ['received', 'action', 'seq'])
  assert.deepEqual(columnsOf('action,seq', { isOfAll: false, sort: 'timestamp' }), [
    'action',
    'seq',
  ])
})
