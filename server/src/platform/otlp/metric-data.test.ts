import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Counter, Gauge, Histogram, Registry } from '@prometheus-io/client'
import { createMetrics } from '../metrics.ts'
import { readMetricsData } from './metric-data.ts'

const TIMES = { startedAtMs: 1_000, nowMs: 61_000.5 }
const ENCODED = { startTimeUnixNano: '1000000000', timeUnixNano: '61000500000' }

test('converts each kind of metric, with a histogram’s buckets counted one by one', async () => {
  const registers = [new Registry()]
  new Counter({ name: 'c_total', help: 'C.', labelNames: ['a'], registers }).inc({ a: 'x' }, 3)
  new Gauge({ name: 'g', help: 'G.', registers }).set(Number.NaN)
  const histogram = new Histogram({
    name: 'h',
    help: 'H.',
    labelNames: ['a'],
    buckets: [1, 2],
    registers,
  })
  for (const value of [0.5, 1.5, 1.5, 9]) histogram.observe({ a: 'x' }, value)
  histogram.observe({ a: 'y' }, 1)
  const labelOf = (stringValue: string) => ({
    attributes: [{ key: 'a', value: { stringValue } }],
    ...ENCODED,
  })
  const explicitBounds = [1, 2]
  assert.deepEqual(await readMetricsData(registers[0] ?? assert.fail(), TIMES), [
    {
      name: 'c_total',
      description: 'C.',
      sum: {
        dataPoints: [{ ...labelOf('x'), asDouble: 3 }],
        aggregationTemporality: 2,
        isMonotonic: true,
      },
    },
    {
      name: 'g',
      description: 'G.',
      gauge: { dataPoints: [{ attributes: [], ...ENCODED, asDouble: 'NaN' }] },
    },
    {
      name: 'h',
      description: 'H.',
      histogram: {
        dataPoints: [
          { ...labelOf('x'), count: '4', sum: 12.5, bucketCounts: ['1', '2', '1'], explicitBounds },
          { ...labelOf('y'), count: '1', sum: 1, bucketCounts: ['1', '0', '0'], explicitBounds },
        ],
        aggregationTemporality: 2,
      },
    },
  ])
})

test('converts all metrics of the service', async () => {
  const { registry } = createMetrics()
  const measured = (await registry.getMetricsAsJSON()).filter(({ values }) => values.length > 0)
  assert(measured.length > 20)
  assert.equal((await readMetricsData(registry, TIMES)).length, measured.length)
})
