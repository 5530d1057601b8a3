import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../test/harness/timing/eventually.ts'
import { createMetrics } from './metrics.ts'

const CENTURY_MS = 100 * 365 * 86_400_000

test('process metrics stay cheap when the system clock jumps ahead', async (t) => {
  const { registry } = createMetrics()
  const readCount = async () => {
    const text = await registry.getSingleMetricAsString(
      'annals_nodejs_eventloop_utilization_histogram',
    )
    return Number(/_count (\d+)/.exec(text)?.[1])
  }
  const afterMore = async (count: number) => {
    await eventually(async () => assert((await readCount()) > count))
    return await readCount()
  }
  const count = await afterMore(0)
  const { now } = Date
  t.mock.method(Date, 'now', () => now() + CENTURY_MS)
  const before = process.cpuUsage()
  await afterMore(count)
  await registry.metrics()
  // A sliding window that moves in steps of 12 s takes more than 10 s of CPU.
  assert(process.cpuUsage(before).user < 5_000_000)
})
