import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY_MS } from '../../platform/time/time-units.ts'
import { healthOf, type KeyCondition } from './key-health.ts'

const NOW_MS = Date.UTC(2026, 5, 15)

const daysFromNow = (days: number) => new Date(NOW_MS + days * DAY_MS)

/** A key without deductions. */
const HEALTHY: KeyCondition = {
  createdAt: daysFromNow(-1),
  expiresAt: daysFromNow(60),
  graceUntil: null,
  lastUsedAt: daysFromNow(0),
  callsToday: 100,
  failuresToday: 0,
  companyHasAllowlist: true,
}

test('a recent, used key that expires and has an allowlist scores 100', () => {
  assert.deepEqual(healthOf(HEALTHY, NOW_MS), { score: 100, deductions: [] })
})

const DEDUCTIONS: readonly [string, Partial<KeyCondition>, number][] = [
  ['90 days without rotation cost nothing', { createdAt: daysFromNow(-90) }, 0],
  ['more than 90 days without rotation cost 10', { createdAt: daysFromNow(-91) }, 10],
  ['more than 180 days without rotation cost 20', { createdAt: daysFromNow(-181) }, 20],
  ['more than a year without rotation costs 30', { createdAt: daysFromNow(-366) }, 30],
  ['a key that never expires loses 10', { expiresAt: null }, 10],
  ['30 days before its end a key loses nothing', { expiresAt: daysFromNow(30) }, 0],
  ['less than 30 days before its end a key loses 10', { expiresAt: daysFromNow(29) }, 10],
  ['less than 7 days before its end a key loses 20', { expiresAt: daysFromNow(6) }, 20],
  [
    'a key that was replaced loses 20 for its end, and nothing for its age',
    { createdAt: daysFromNow(-366), expiresAt: null, graceUntil: daysFromNow(1) },
    20,
  ],
  ['30 days without use cost nothing', { lastUsedAt: daysFromNow(-30) }, 0],
  ['more than 30 days without use cost 15', { lastUsedAt: daysFromNow(-31) }, 15],
  ['more than 90 days without use cost 25', { lastUsedAt: daysFromNow(-91) }, 25],
  ['a new key that was never used loses nothing', { lastUsedAt: null }, 0],
  [
    'a key that was never used is unused since it was made',
    { createdAt: daysFromNow(-31), lastUsedAt: null },
    15,
  ],
  ['fewer than 20 calls say nothing', { callsToday: 19, failuresToday: 19 }, 0],
  ['less than a tenth of failing calls costs nothing', { failuresToday: 9 }, 0],
  ['a tenth of failing calls costs 10', { failuresToday: 10 }, 10],
  ['half of failing calls costs 25', { failuresToday: 50 }, 25],
  ['a company without an allowlist loses 15', { companyHasAllowlist: false }, 15],
]

for (const [promise, change, points] of DEDUCTIONS) {
  test(promise, () => {
    const { score, deductions } = healthOf({ ...HEALTHY, ...change }, NOW_MS)
    assert.equal(score, 100 - points)
    assert.equal(deductions.length, points === 0 ? 0 : 1)
    assert(deductions.every(({ reason }) => /^[A-Z].*\.$/.test(reason)))
  })
}

test('the worst key lists every reason, and its score is an integer from 0 to 100', () => {
  const worst: KeyCondition = {
    createdAt: daysFromNow(-400),
    expiresAt: daysFromNow(1),
    graceUntil: null,
    lastUsedAt: null,
    callsToday: 20,
    failuresToday: 20,
    companyHasAllowlist: false,
  }
  const { score, deductions } = healthOf(worst, NOW_MS)
  assert.equal(score, 0)
  assert.deepEqual(
    deductions.map(({ points }) => points),
    [30, 20, 25, 25, 15],
  )
})
