import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnnalsApiError, AnnalsNetworkError, AnnalsTimeoutError } from './errors.ts'
import { parseRetryAfter, type RetryPolicy, retryWaitMs } from './retry.ts'

const LIMITS = { attempt: 1, retriesMax: 4, retryAfterMsMax: 60_000, random: () => 0.5 }
const waitMs = (
  error: unknown,
  retryPolicy: RetryPolicy = 'safe',
  limits: Partial<typeof LIMITS> = {},
) => retryWaitMs(error, { ...LIMITS, retryPolicy, ...limits })
const response = (status: number, code: string, retryAfterMs: number | null = null) =>
  new AnnalsApiError('refused', { status, code, retryAfterMs })

test('a request that could create something twice is repeated only if it was refused', () => {
  const unknown = [
    new AnnalsNetworkError('', { code: 'network_error' }),
    new AnnalsTimeoutError('', { code: 'timeout' }),
    response(503, 'unavailable'),
    response(502, 'http_502'),
    response(504, 'http_504'),
    response(408, 'request_timeout'),
  ]
  for (const error of unknown) {
    assert.equal(waitMs(error, 'if-refused'), null, error.code)
    assert.notEqual(waitMs(error, 'safe'), null, error.code)
  }
  for (const error of [response(429, 'rate_limited'), response(503, 'overloaded')]) {
    assert.notEqual(waitMs(error, 'if-refused'), null, error.code)
  }
})

test('a request that would fail again is not repeated', () => {
  const errors = [400, 401, 403, 404, 409, 413, 500].map((status) => response(status, 'x'))
  for (const error of [...errors, new Error('a bug')]) assert.equal(waitMs(error), null)
})

test('waits grow up to ten seconds, and there are none after the last retry', () => {
  const error = response(503, 'unavailable')
  const waits = [1, 2, 3, 4, 5].map((attempt) => waitMs(error, 'safe', { attempt }))
  assert.deepEqual(waits, [150, 300, 600, 1_200, null])
  assert.equal(waitMs(error, 'safe', { attempt: 30, retriesMax: 99 }), 7_500)
  assert.equal(waitMs(error, 'safe', { random: () => 0 }), 100)
})

test('a retry never waits less than the service asks, and a wait that is too long is an error', () => {
  for (const random of [() => 0, () => 0.99]) {
    assert((waitMs(response(429, 'rate_limited', 3_000), 'safe', { random }) ?? 0) >= 3_000)
  }
  assert.equal(waitMs(response(429, 'rate_limited', 60_001)), null)
})

test('Retry-After is read in seconds and as a date', () => {
  const nowMs = Date.UTC(2026, 0, 1)
  assert.equal(parseRetryAfter('7', nowMs), 7_000)
  assert.equal(parseRetryAfter('Thu, 01 Jan 2026 00:00:09 GMT', nowMs), 9_000)
  assert.equal(parseRetryAfter('Thu, 01 Jan 2025 00:00:09 GMT', nowMs), 0)
  for (const header of [null, '', 'soon', '-1', '1e9999']) {
    assert.equal(parseRetryAfter(header, nowMs), null)
  }
})
