import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry, Counter } from '@prometheus-io/client'
import { pino } from 'pino'
import { MetricExporter } from './metric-exporter.ts'
import { OtlpClient, type OtlpSignal } from './otlp-client.ts'

/** A client whose receiver responds with this body. */
function createClient(signal: OtlpSignal, body: string) {
  const lines: { event: string; reason?: string }[] = []
  const logger = pino(
    { base: null },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  )
  const client = new OtlpClient({
    url: 'http://127.0.0.1:1/',
    headers: null,
    signal,
    fetch: async () => new Response(body),
    logger,
    endSignal: new AbortController().signal,
  })
  return { client, lines, logger }
}

const partial = (field: string, value: string) => `{"partialSuccess":{"${field}":${value}}}`

for (const [signal, field] of [
  ['traces', 'rejectedSpans'],
  ['metrics', 'rejectedDataPoints'],
] as const) {
  test(`counts the ${signal} that the receiver rejects`, async () => {
    for (const [value, rejectedCount] of [
      ['0', 0],
      ['"0"', 0],
      ['null', 0],
      ['3', 3],
      ['"5"', 5],
    ] as const) {
      const { client, lines } = createClient(signal, partial(field, value))
      const outcome = await client.send({ body: '{}', count: 5 })
      assert.deepEqual(outcome, { kind: 'sent', rejectedCount }, value)
      assert.equal(lines.length, rejectedCount > 0 ? 1 : 0, value)
    }
  })

  test(`corrects and logs a count of ${signal} that can't be right`, async () => {
    for (const [value, rejectedCount] of [
      ['-5', 0],
      ['"-1"', 0],
      ['6', 5],
      ['1e999', 5],
      ['2.5', 2],
      ['"many"', 0],
      ['{}', 0],
      ['true', 0],
    ] as const) {
      const { client, lines } = createClient(signal, partial(field, value))
      const outcome = await client.send({ body: '{}', count: 5 })
      assert.deepEqual(outcome, { kind: 'sent', rejectedCount }, value)
      assert.deepEqual(
        lines.map(({ event }) => event),
        ['telemetry.failed'],
        value,
      )
    }
  })
}

test('a metric that cannot be read does not fail the stop', async () => {
  const { client, lines, logger } = createClient('metrics', '{}')
  const registry = new Registry()
  const collect = () => {
    throw new Error('no value')
  }
  registry.registerMetric(
    new Counter({ name: 'broken_total', help: 'Throws.', registers: [], collect }),
  )
  const exporter = new MetricExporter({
    client,
    resource: {},
    everyMs: 3_600_000,
    registry,
    refresh: async () => {},
    clock: () => 0,
    logger,
  })
  await exporter[Symbol.asyncDispose]()
  assert.deepEqual(
    lines.map(({ event, reason }) => [event, reason]),
    [['telemetry.failed', 'Error: no value']],
  )
})
