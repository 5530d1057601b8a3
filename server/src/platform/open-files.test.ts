import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionLimit } from './open-files.ts'

test('reserves descriptors for the process itself, and reports if there are too few', () => {
  assert.deepEqual(connectionLimit(300), { connectionsMax: 150, isReserveMet: false })
  assert.deepEqual(connectionLimit(4_096), { connectionsMax: 2_048, isReserveMet: true })
  assert.deepEqual(connectionLimit(8_192), { connectionsMax: 6_144, isReserveMet: true })
  assert.deepEqual(connectionLimit(Infinity), { connectionsMax: 10_000, isReserveMet: true })
})
