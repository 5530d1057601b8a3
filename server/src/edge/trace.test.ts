import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newTraceId, traceIdOf } from './trace.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const FRESH = /^[0-9a-f]{32}$/

test('uses the trace id of a W3C traceparent', () => {
  assert.equal(traceIdOf({ traceparent: `00-${TRACE_ID}-00f067aa0ba902b7-01` }), TRACE_ID)
})

test('accepts a later traceparent version with more fields, as the standard requires', () => {
  assert.equal(traceIdOf({ traceparent: `cc-${TRACE_ID}-00f067aa0ba902b7-01-more` }), TRACE_ID)
})

for (const traceparent of [
  '',
  'nonsense',
  TRACE_ID,
  `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
  `00-${TRACE_ID}-0000000000000000-01`,
  `00-${TRACE_ID.toUpperCase()}-00f067aa0ba902b7-01`,
  `00-${TRACE_ID}-00f067aa0ba902b7`,
  `00-${TRACE_ID}-00f067aa0ba902b7-01-more`,
  `00-${TRACE_ID}-00f067aa0ba902b7-01, 00-${TRACE_ID}-00f067aa0ba902b7-01`,
  `ff-${TRACE_ID}-00f067aa0ba902b7-01`,
  `00-${TRACE_ID.slice(1)}-00f067aa0ba902b7-01`,
  ` 00-${TRACE_ID}-00f067aa0ba902b7-01`,
]) {
  test(`creates a new trace id for an invalid traceparent: "${traceparent}"`, () => {
    const traceId = traceIdOf({ traceparent })
    assert.match(traceId, FRESH)
    assert.notEqual(traceId, TRACE_ID)
    assert.notEqual(traceId, '0'.repeat(32))
  })
}

test('creates a trace id for each request without a traceparent', () => {
  const ids = Array.from({ length: 1_000 }, () => traceIdOf({}))
  assert(ids.every((id) => FRESH.test(id)))
  assert.equal(new Set([...ids, newTraceId()]).size, 1_001)
})
