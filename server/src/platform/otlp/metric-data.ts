import type { Registry } from '@prometheus-io/client'
import { attributesJson, unixNano } from './otlp-json.ts'

type Metric = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number]
type Labels = Record<string, string | number | undefined>
type Value = { value: number; labels: Labels; metricName?: string }
type Times = { startTimeUnixNano: string; timeUnixNano: string }

const CUMULATIVE = 2

type MetricData = { name: string; description: string } & ReturnType<typeof dataOf>

/** Converts the metrics of the registry, with the names and labels that `/metrics` has. */
export async function readMetricsData(
  registry: Registry,
  { startedAtMs, nowMs }: { startedAtMs: number; nowMs: number },
): Promise<MetricData[]> {
  const times = { startTimeUnixNano: unixNano(startedAtMs), timeUnixNano: unixNano(nowMs) }
  const metrics = await registry.getMetricsAsJSON()
  return metrics
    .filter(({ values }) => values.length > 0)
    .map((metric) => ({
      name: metric.name,
      description: metric.help,
      ...dataOf(metric, times),
    }))
}

export function countDataPoints(metrics: readonly MetricData[]): number {
  return metrics.reduce((count, metric) => {
    const { dataPoints } = metric.sum ?? metric.gauge ?? metric.histogram
    return count + dataPoints.length
  }, 0)
}

function dataOf({ name, type, values }: Metric, times: Times) {
  const numbers = () => values.map((value) => numberPoint(value, times))
  switch (type) {
    case 'counter':
      return {
        sum: {
          dataPoints: numbers(),
          aggregationTemporality: CUMULATIVE,
          isMonotonic: true,
        },
      }
    case 'gauge':
      return { gauge: { dataPoints: numbers() } }
    case 'histogram': {
      const dataPoints = histogramPoints(name, values, times)
      return { histogram: { dataPoints, aggregationTemporality: CUMULATIVE } }
    }
    case 'summary':
      throw new Error(`${name} is a summary, which is not supported.`)
    default:
      return type satisfies never
  }
}

function numberPoint({ value, labels }: Value, times: Times) {
  return { attributes: labelsJson(labels), ...times, asDouble: doubleJson(value) }
}

/** The registry has a value per bucket, counted from the first bucket on. OTLP counts each bucket by itself. */
function histogramPoints(name: string, values: readonly Value[], times: Times) {
  const series = Map.groupBy(values, ({ labels }) => JSON.stringify({ ...labels, le: undefined }))
  return [...series.values()].map((samples) => {
    const valueOf = (ending: string) =>
      samples.find(({ metricName }) => metricName === `${name}_${ending}`)?.value ?? 0
    const buckets = samples.filter(({ metricName }) => metricName === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => Number(labels.le)).filter(Number.isFinite)
    return {
      attributes: labelsJson({ ...samples[0]?.labels, le: undefined }),
      ...times,
      count: String(valueOf('count')),
      sum: valueOf('sum'),
      bucketCounts: buckets.map(({ value }, index) =>
        String(value - (buckets[index - 1]?.value ?? 0)),
      ),
      explicitBounds: bounds,
    }
  })
}

function labelsJson(labels: Labels) {
  const given = Object.entries(labels).filter(([, value]) => value !== undefined)
  return attributesJson(Object.fromEntries(given.map(([name, value]) => [name, String(value)])))
}

/** JSON has no other way to write these. */
function doubleJson(value: number): number | string {
  return Number.isFinite(value) ? value : String(value)
}
