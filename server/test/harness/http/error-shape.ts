import assert from 'node:assert/strict'
import type { RawResponse } from './raw-http.ts'

/** The response is one of our errors, with this status and code, in the error format. */
export function assertErrorShape(
  { status, headers, body }: RawResponse,
  expected: { status: number; code: string },
  about = '',
): { error: string; code: string; traceId: string } {
  const parsed = JSON.parse(body || 'null')
  const { status: expectedStatus, code } = expected
  assert.deepEqual({ status, code: parsed?.code }, { status: expectedStatus, code }, about || body)
  assert.match(headers.get('content-type') ?? '', /^application\/json/, about)
  assert.deepEqual(
    Object.keys(parsed).filter((name) => name !== 'details'),
    ['error', 'code', 'traceId'],
    about,
  )
  assert.match(parsed.error, /^[A-Z].*\.$/, 'a sentence')
  assert.match(parsed.traceId, /^[0-9a-f]{32}$/, about)
  assert.equal(headers.get('x-trace-id'), parsed.traceId, about)
  assert.doesNotMatch(body, /node:internal|\.ts:\d|\.js:\d|at .*\(.*:\d+:\d+\)/, 'no stack trace')
  return parsed
}
