import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SamplerName } from './otlp-settings.ts'
import { type Span, Tracer } from './tracer.ts'

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN_ID = '00f067aa0ba902b7'
const EVENT_ID = '018f4e5a-0000-7000-8000-000000000001'

function createTracer(sampler: SamplerName, ratio = 1) {
  const ended: Span[] = []
  const onEnd = (span: Span) => void ended.push(span)
  return { tracer: new Tracer({ sampler, ratio, clock: () => 1_000_000, onEnd }), ended }
}

const parent = (isSampled: boolean) => ({ traceId: TRACE_ID, spanId: SPAN_ID, isSampled })

for (const [sampler, withoutParent, sampledParent, unsampledParent] of [
  ['always_on', true, true, true],
  ['always_off', false, false, false],
  ['parentbased_always_on', true, true, false],
  ['parentbased_always_off', false, true, false],
] as const) {
  test(`${sampler} decides with and without a parent as OpenTelemetry defines`, () => {
    const { tracer } = createTracer(sampler)
    const decide = (from: ReturnType<typeof parent> | null) =>
      tracer.startRequest('GET', TRACE_ID, from) !== null
    assert.deepEqual(
      [decide(null), decide(parent(true)), decide(parent(false))],
      [withoutParent, sampledParent, unsampledParent],
    )
  })
}

test('a ratio samples by the end of the trace id, so that all services agree', () => {
  const { tracer } = createTracer('traceidratio', 0.25)
  const isSampled = (end: string) =>
    tracer.startRequest('GET', TRACE_ID.slice(0, 18) + end, parent(true)) !== null
  assert(isSampled('c0000000000000'))
  assert(isSampled('ffffffffffffff'))
  assert(!isSampled('bfffffffffff00'))
  const { tracer: none } = createTracer('traceidratio', 0)
  assert.equal(none.startRequest('GET', `${TRACE_ID.slice(0, 18)}ffffffffffffff`, null), null)
})

test('an attempt continues the request that sent its event, even if only the caller sampled it', () => {
  const { tracer } = createTracer('parentbased_traceidratio', 0)
  const request = tracer.startRequest('POST', TRACE_ID, parent(true))
  request?.remember(EVENT_ID)
  const { span, traceparent } = tracer.startAttempt('attempt', {
    eventId: EVENT_ID,
    traceId: TRACE_ID,
  })
  assert.equal(span?.parentSpanId, request?.spanId)
  assert.equal(traceparent, `00-${TRACE_ID}-${span?.spanId}-01`)
})

test('without a known request, an attempt is a root span in the trace of its event', () => {
  const { tracer } = createTracer('parentbased_always_on')
  const { span } = tracer.startAttempt('attempt', { eventId: EVENT_ID, traceId: TRACE_ID })
  assert.equal(span?.traceId, TRACE_ID)
  assert.equal(span?.parentSpanId, null)
  const test = tracer.startAttempt('attempt', { eventId: EVENT_ID, traceId: null })
  assert.match(test.traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
})

test('at most 10,000 requests are remembered, the latest ones', () => {
  const { tracer } = createTracer('always_on')
  const request = tracer.startRequest('POST', TRACE_ID, null)
  for (let number = 0; number <= 10_000; number += 1) request?.remember(String(number))
  assert.equal(tracer.recall('0'), null)
  assert.deepEqual(tracer.recall('1'), { traceId: TRACE_ID, spanId: request?.spanId })
  assert.deepEqual(tracer.recall('10000'), { traceId: TRACE_ID, spanId: request?.spanId })
})

test('requests that their callers do not sample evict no span, and the latest 10,000 are remembered', () => {
  const { tracer } = createTracer('parentbased_always_on')
  tracer.startRequest('POST', TRACE_ID, parent(true))?.remember(EVENT_ID)
  const traceIds = Array.from({ length: 10_001 }, (_, nth) => String(nth).padStart(32, '0'))
  for (const traceId of traceIds) tracer.startRequest('POST', traceId, parent(false))
  assert.notEqual(tracer.recall(EVENT_ID), null)
  const attempt = (traceId = '') => tracer.startAttempt('attempt', { eventId: '', traceId }).span
  assert.notEqual(attempt(traceIds[0]), null)
  assert.equal(attempt(traceIds[1]), null)
  assert.equal(attempt(traceIds.at(-1)), null)
})

test('a span ends once, and has at most 128 links', () => {
  const { tracer, ended } = createTracer('always_on')
  const span = tracer.startRoot('export job')
  for (let count = 0; count < 200; count += 1) span?.addLink(parent(true))
  span?.end()
  span?.end()
  assert.deepEqual(ended, [span])
  assert.equal(span?.links.length, 128)
})
