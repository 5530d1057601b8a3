import assert from 'node:assert/strict'
import { test } from 'node:test'

import * as fc from 'fast-check'

import { rounds } from '../../../test/harness/timing/fault-rounds.ts'
import { formatUtcMs, isUtcMs } from './utc-time.ts'

const FIRST_MS = Date.parse('0000-01-01T00:00:00.000Z')
const LAST_MS = Date.parse('9999-12-31T23:59:59.999Z')

test('formats every millisecond of the years 0000 to 9999 like toISOString', () => {
  const instants = fc.oneof(
    fc.integer({ min: FIRST_MS, max: LAST_MS }),
    fc.constantFrom(FIRST_MS, LAST_MS, -1, 0, 951_782_399_999, 951_782_400_000),
  )
  fc.assert(
    fc.property(instants, (ms) => {
      assert.equal(formatUtcMs(ms), new Date(ms).toISOString())
    }),
    { numRuns: rounds(300, 1_000) },
  )
})

test('rejects times outside these years, and fractions of a millisecond', () => {
  for (const ms of [FIRST_MS - 1, LAST_MS + 1, 0.5, Number.NaN, Infinity]) {
    assert.equal(isUtcMs(ms), false)
    assert.throws(() => formatUtcMs(ms), assert.AssertionError)
  }
})
