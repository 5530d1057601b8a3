import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cadence } from '../job/export-job.ts'
import { dueAtOf, periodEndAfter, periodStartOf } from './schedule.ts'

test('periods are whole days, weeks from Monday and months in UTC', () => {
  const cases: [Cadence, now: string, from: string, to: string][] = [
    ['DAILY', '2026-03-01T23:59:59.999Z', '2026-03-01', '2026-03-02'],
    ['DAILY', '2026-03-02T00:00:00Z', '2026-03-02', '2026-03-03'],
    ['WEEKLY', '2026-03-01T12:00:00Z', '2026-02-23', '2026-03-02'],
    ['WEEKLY', '2026-03-02T00:00:00Z', '2026-03-02', '2026-03-09'],
    ['MONTHLY', '2026-02-28T23:00:00Z', '2026-02-01', '2026-03-01'],
    ['MONTHLY', '2026-12-31T23:00:00Z', '2026-12-01', '2027-01-01'],
    ['MONTHLY', '2027-01-01T00:00:00Z', '2027-01-01', '2027-02-01'],
  ]
  for (const [cadence, now, from, to] of cases) {
    const endMs = periodEndAfter(cadence, Date.parse(now))
    const startMs = periodStartOf(cadence, endMs)
    assert.deepEqual([startMs, endMs], [Date.parse(from), Date.parse(to)], `${cadence} ${now}`)
    assert.equal(dueAtOf(endMs).toISOString(), `${to}T00:15:00.000Z`)
  }
})
