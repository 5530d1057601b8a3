import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseConfig } from '../../config.ts'
import { OperatorError } from '../../errors.ts'

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://10.0.0.1:4318' }

function problemOf(env: Record<string, string>): string {
  try {
    parseConfig({ ...ENDPOINT, ...env })
  } catch (error) {
    assert(error instanceof OperatorError)
    return error.message.split('\n')[1]?.trim() ?? ''
  }
  return ''
}

test('the variables of OpenTelemetry have their standard defaults', () => {
  const config = parseConfig(ENDPOINT)
  assert.equal(config.otlpEndpoint, 'http://10.0.0.1:4318/')
  assert.equal(config.otlpProtocol, 'http/json')
  assert.equal(config.otelSampler, 'parentbased_always_on')
  assert.equal(config.otelSamplerRatio, 1)
  assert.equal(config.otelSpanDelayMs, 5_000)
  assert.equal(config.otelMetricIntervalMs, 60_000)
})

test('an empty variable of OpenTelemetry counts as not set', () => {
  const names = ['HEADERS', 'PROTOCOL', 'TRACES_ENDPOINT'].map(
    (name) => `OTEL_EXPORTER_OTLP_${name}`,
  )
  const env = Object.fromEntries([...names, 'OTEL_TRACES_SAMPLER'].map((name) => [name, '']))
  assert.equal(problemOf(env), '')
  assert.equal(parseConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: '' }).otlpEndpoint, null)
})

test('without an endpoint, or when disabled, invalid variables of OpenTelemetry are ignored', () => {
  const invalid = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_SAMPLER: 'jaeger_remote' }
  assert.equal(parseConfig(invalid).otlpEndpoint, null)
  assert.equal(
    parseConfig({ ...ENDPOINT, ...invalid, OTEL_SDK_DISABLED: 'TRUE' }).otlpEndpoint,
    null,
  )
})

test('without a signal to export, invalid variables of OpenTelemetry are ignored', () => {
  const invalid = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }
  const none = { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }
  assert.equal(problemOf({ ...invalid, ...none }), '')
  const traces = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://10.0.0.1:4318' }
  const config = parseConfig({ ...traces, ...invalid, OTEL_TRACES_EXPORTER: 'none' })
  assert.equal(config.otlpTracesEndpoint, null)
  for (const name of ['OTEL_TRACES_EXPORTER', 'OTEL_METRICS_EXPORTER']) {
    assert.match(problemOf({ ...invalid, [name]: 'none' }), /^OTEL_EXPORTER_OTLP_PROTOCOL must/)
  }
})

test('another exporter is refused with those that are supported', () => {
  for (const [name, value] of [
    ['OTEL_TRACES_EXPORTER', 'zipkin'],
    ['OTEL_METRICS_EXPORTER', 'otlp,prometheus'],
  ] as const) {
    assert.equal(problemOf({ [name]: value }), `${name} must be one of otlp, none, got "${value}"`)
  }
})

test('another protocol is refused with the one that is supported', () => {
  assert.equal(
    problemOf({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }),
    'OTEL_EXPORTER_OTLP_PROTOCOL must be http/json, got "grpc"; Annals sends OTLP as JSON over HTTP, which collectors accept on the HTTP port, usually 4318',
  )
})

test('headers are decoded, secret, and never part of an error', () => {
  for (const [name, variable] of [
    ['otlpHeaders', 'OTEL_EXPORTER_OTLP_HEADERS'],
    ['otlpTracesHeaders', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'],
    ['otlpMetricsHeaders', 'OTEL_EXPORTER_OTLP_METRICS_HEADERS'],
  ] as const) {
    const headers = parseConfig({ ...ENDPOINT, [variable]: 'a=b%3Dc , x-key=1=2,' })[name]
    assert.deepEqual(headers?.reveal(), { a: 'b=c', 'x-key': '1=2' })
    assert.equal(String(headers), '[secret]')
    for (const value of [
      'hidden',
      'a=%hidden',
      'a b=hidden',
      'a=hid%0Aden',
      'content-length=hidden',
    ]) {
      const problem = problemOf({ [variable]: value })
      assert(problem.startsWith(`${variable} must `), value)
      assert(!problem.includes('hid'))
    }
  }
})

for (const [name, value] of [
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'localhost:4318'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:hidden@localhost:4318'],
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '1.1'],
  ['OTEL_TRACES_SAMPLER_ARG', ' '],
  ['OTEL_RESOURCE_ATTRIBUTES', 'a'],
  ['OTEL_METRIC_EXPORT_INTERVAL', '10'],
] as const) {
  test(`refuses ${name}=${value}`, () => {
    const problem = problemOf({ [name]: value })
    assert(problem.startsWith(`${name} must `), problem)
    assert(!problem.includes('hidden'))
  })
}
