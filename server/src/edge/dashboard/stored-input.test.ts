import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../../errors.ts'
import { DashboardExportInput } from '../schema/dashboard/exports.ts'
import { ViewQuery } from '../schema/dashboard/views.ts'
import { registerFormats } from '../schema/formats.ts'
import { createStoredReader, refuseUnusable } from './stored-input.ts'

registerFormats()
const readQuery = createStoredReader(ViewQuery, {})
const readBody = createStoredReader(DashboardExportInput, { source: 'HOT', format: 'JSONL' })

test('input that this version accepts is read as it was stored', () => {
  const query = { range: '24h', category: 'auth', columns: ['time', 'actor'] }
  assert.deepEqual(readQuery(query), { value: query, isUsable: true, unusableFields: [] })
})

test('reports and omits removed fields and values that are no longer accepted', () => {
  const stored = { range: 'fortnight', severity: 'high', category: 'auth', columns: ['time', 7] }
  const { value, isUsable, unusableFields } = readQuery(stored)
  assert.deepEqual(value, { category: 'auth' })
  assert.equal(isUsable, false)
  assert(unusableFields.includes('severity') && unusableFields.includes('range'))
  assert(unusableFields.some((name) => name.startsWith('columns')))
})

test('an invalid field inside an object keeps the rest of the object', () => {
  const stored = { source: 'HOT', format: 'CSV', filters: { category: 'c', severity: 'high' } }
  const { value, unusableFields } = readBody(stored)
  assert.deepEqual(value, { source: 'HOT', format: 'CSV', filters: { category: 'c' } })
  assert.deepEqual(unusableFields, ['filters.severity'])
})

test('treats unreadable input as empty and unusable', () => {
  for (const stored of [null, 'text', 7, [], { format: 'CSV' }]) {
    const read = readBody(stored)
    assert.deepEqual(read.value, { source: 'HOT', format: 'JSONL' }, JSON.stringify(stored))
    assert.equal(read.isUsable, false)
    assert.throws(() => refuseUnusable('template', read), ApiError)
  }
})
