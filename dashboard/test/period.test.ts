import assert from 'node:assert/strict'
import { test } from 'node:test'
import { periodText, recentMonths, scopeText } from '../src/pages/integrity/period.ts'
import { showUtc } from '../src/parts/time/time-zone.ts'

showUtc(true)
const NOW_MS = Date.UTC(2026, 2, 31, 23)

test('months follow each other without gaps, across a year', () => {
  const months = recentMonths(NOW_MS)
  assert.equal(months.length, 13)
  const [current, last] = months
  assert.deepEqual([last?.from, last?.to], ['2026-02-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z'])
  assert.equal(current?.from, last?.to)
  for (const [index, { from }] of months.slice(0, -1).entries()) {
    assert.equal(from, months[index + 1]?.to)
  }
  assert.equal(months.at(-1)?.from, '2025-03-01T00:00:00.000Z')
})

test('a whole month is shown by name, and any other period by its times', () => {
  for (const { label, from, to } of recentMonths(NOW_MS)) {
    assert.equal(periodText({ from, to }), label)
  }
  const [, february = assert.fail()] = recentMonths(NOW_MS)
  const { from, to } = february
  assert.match(periodText({ from, to: from.replace('-01T', '-02T') }), / to /)
  assert.equal(scopeText({ from: null, to: null }), 'Whole chain')
  assert.match(scopeText({ from, to }), /2026/)
})
