import assert from 'node:assert/strict'
import type { App } from '../../../src/app.ts'

/** For `startTestApp`: serves the metrics on a free port. */
export const METRICS_ENV = { ANNALS_METRICS_PORT: '0' }

type Sample = { name: string; labels: Record<string, string>; value: number }

/** What a service exports: the type of each metric, also of those without samples, and all samples. */
export type Scrape = { types: Map<string, string>; samples: Sample[] }

export async function scrapeMetrics({ app }: { app: Pick<App, 'metricsUrl'> }): Promise<Scrape> {
  const response = await fetch(`${app.metricsUrl}/metrics`)
  const text = await response.text()
  assert.equal(response.status, 200, text)
  const types = new Map<string, string>()
  const samples: Sample[] = []
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? []
    if (name !== undefined && type !== undefined) types.set(name, type)
    const sample = /^([a-z_0-9]+)(?:\{(.*)\})? (\S+)$/.exec(line)
    if (!sample) continue
    const labels = Array.from((sample[2] ?? '').matchAll(/(\w+)="([^"]*)"/g), ([, key, value]) => [
      key,
      value,
    ])
    samples.push({
      name: sample[1] ?? '',
      labels: Object.fromEntries(labels),
      value: Number(sample[3]),
    })
  }
  return { types, samples }
}

/** The value of the only sample with this name and these labels. Null if there is none. */
export function valueOf(
  { samples }: Scrape,
  name: string,
  labels: Record<string, string> = {},
): number | null {
  const found = samples.filter(
    (sample) =>
      sample.name === name &&
      Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  assert(found.length <= 1, `${name} has ${found.length} samples`)
  return found[0]?.value ?? null
}
