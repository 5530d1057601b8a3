import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { ATTEMPTS_MAX, nextAttemptAtMs, readRetryAfter } from './retry-schedule.ts'

const NOW_MS = Date.UTC(2026, 2, 1, 12)
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const PLANNED_MS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  10 * HOUR,
] as const

const noJitter = (): number => 0
const waitMs = (attempt: number, retryAfterMs: number | null, jitter = noJitter): number => {
  const atMs = nextAttemptAtMs({ attempt, failedAtMs: NOW_MS, retryAfterMs, jitter })
  assert(atMs !== null)
  return atMs - NOW_MS
}

test('the delays are 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h', () => {
  assert.deepEqual(
    PLANNED_MS.map((_, index) => waitMs(index + 1, null)),
    PLANNED_MS,
  )
})

test('there is no ninth attempt, whatever the receiver requests', () => {
  assert.equal(ATTEMPTS_MAX, 8)
  for (const attempt of [8, 9, 100]) {
    for (const retryAfterMs of [null, MINUTE]) {
      const failed = { attempt, failedAtMs: NOW_MS, retryAfterMs, jitter: noJitter }
      assert.equal(nextAttemptAtMs(failed), null)
    }
  }
})

test('jitter adds at most a fifth, in whole milliseconds', () => {
  assert.equal(
    waitMs(2, null, () => 1),
    6 * MINUTE,
  )
  assert.equal(
    waitMs(2, null, () => 0.5),
    5.5 * MINUTE,
  )
  assert.equal(
    waitMs(1, null, () => 1 / 3),
    5_333,
  )
})

test('Retry-After extends a delay up to twice the planned one', () => {
  assert.equal(waitMs(2, 7 * MINUTE), 7 * MINUTE)
  assert.equal(waitMs(2, 10 * MINUTE), 10 * MINUTE)
  assert.equal(waitMs(2, 11 * MINUTE), 10 * MINUTE)
  assert.equal(waitMs(7, 365 * 24 * HOUR), 20 * HOUR)
})

test('a delay is never shorter than planned or requested within limits, nor more than a fifth longer', () => {
  const anyAttempt = fc.integer({ min: 1, max: 7 })
  const anyRetryAfter = fc.option(fc.nat({ max: 30 * HOUR }))
  const anyJitter = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
  fc.assert(
    fc.property(anyAttempt, anyRetryAfter, anyJitter, (attempt, retryAfterMs, jitter) => {
      const plannedMs = PLANNED_MS[attempt - 1] ?? 0
      const leastMs = Math.max(plannedMs, Math.min(retryAfterMs ?? 0, 2 * plannedMs))
      const actualMs = waitMs(attempt, retryAfterMs, () => jitter)
      assert(actualMs >= leastMs)
      assert(actualMs <= Math.ceil(leastMs * 1.2))
    }),
  )
})

test('attempts are numbered from 1', () => {
  for (const attempt of [0, -1, 1.5]) {
    const failed = { attempt, failedAtMs: NOW_MS, retryAfterMs: null, jitter: noJitter }
    assert.throws(() => nextAttemptAtMs(failed), assert.AssertionError)
  }
})

test('reads Retry-After as seconds or as an HTTP date', () => {
  const cases = [
    ['0', 0],
    ['120', 2 * MINUTE],
    [' 120 ', 2 * MINUTE],
    ['Sun, 01 Mar 2026 12:02:00 GMT', 2 * MINUTE],
    ['Sun, 01 Mar 2026 12:00:00 GMT', 0],
  ] as const
  for (const [header, ms] of cases) assert.equal(readRetryAfter(header, NOW_MS), ms, header)
})

test('caps a Retry-After at the longest delay that is honored', () => {
  for (const header of ['72001', '9'.repeat(400), 'Tue, 31 Dec 2999 23:59:59 GMT']) {
    assert.equal(readRetryAfter(header, NOW_MS), 20 * HOUR, header)
  }
})

test('ignores an invalid Retry-After', () => {
  const headers = [
    undefined,
    '',
    ' ',
    '-1',
    '-120',
    '+5',
    '1.5',
    '1e3',
    '0x10',
    '5 s',
    '120, 240',
    'soon',
    'NaN',
    'Infinity',
    '2026-03-01T12:02:00Z',
    'Sun, 01 Mar 2026 11:59:59 GMT',
    'Mon, 01 Mar 2026 12:02:00 GMT',
    'Tue, 31 Feb 2026 12:02:00 GMT',
    'Sun, 01 Mar 2026 12:02:00 +0100',
    'Sun Mar  1 12:02:00 2026',
  ]
  for (const header of headers) assert.equal(readRetryAfter(header, NOW_MS), null, header)
})

test('reads any header as nothing or as a delay within limits', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.date().map(String), fc.double().map(String)), (header) => {
      const ms = readRetryAfter(header, NOW_MS)
      assert(ms === null || (ms >= 0 && ms <= 20 * HOUR))
    }),
  )
})
