import type { Sample } from './monitor.ts'

export type MemoryTrend = {
  minutes: number
  rssMbFirst: number
  rssMbLast: number
  heapMbFirst: number
  heapMbLast: number
  /** Null if the service did not run long enough to tell. */
  isSteady: boolean | null
}

/** By then a service has compiled its code, and its allocator has grown to the size of the load. */
const WARM_UP_SECONDS = 180
const MINUTES_MIN = 6
const RSS_GROWTH = { share: 0.25, mb: 48 }
const HEAP_GROWTH = { share: 0.25, mb: 12 }

/** Compares the first third with the last third of the longest run of one process. */
export function memoryTrend(samples: readonly Sample[]): MemoryTrend | null {
  const lives = [...Map.groupBy(samples, ({ pid }) => pid).values()]
  const [longest = []] = lives.toSorted((a, b) => secondsOf(b) - secondsOf(a))
  const warmAtSeconds = (longest[0]?.atSeconds ?? 0) + WARM_UP_SECONDS
  const warm = longest.filter(({ atSeconds }) => atSeconds >= warmAtSeconds)
  const third = Math.floor(warm.length / 3)
  if (third === 0) return null
  const first = warm.slice(0, third)
  const last = warm.slice(-third)
  const [rssMbFirst, rssMbLast] = [first, last].map((part) => medianOf(part, 'rssMb'))
  const [heapMbFirst, heapMbLast] = [first, last].map((part) => medianOf(part, 'heapMb'))
  const trend = {
    minutes: secondsOf(longest) / 60,
    rssMbFirst: rssMbFirst ?? 0,
    rssMbLast: rssMbLast ?? 0,
    heapMbFirst: heapMbFirst ?? 0,
    heapMbLast: heapMbLast ?? 0,
  }
  const isSteady =
    trend.rssMbLast <= boundOf(trend.rssMbFirst, RSS_GROWTH) &&
    trend.heapMbLast <= boundOf(trend.heapMbFirst, HEAP_GROWTH)
  return { ...trend, isSteady: trend.minutes < MINUTES_MIN ? null : isSteady }
}

function secondsOf(samples: readonly Sample[]): number {
  return (samples.at(-1)?.atSeconds ?? 0) - (samples[0]?.atSeconds ?? 0)
}

function medianOf(samples: readonly Sample[], name: 'rssMb' | 'heapMb'): number {
  const values = samples.map((sample) => sample[name]).toSorted((a, b) => a - b)
  return values[Math.floor(values.length / 2)] ?? 0
}

function boundOf(mb: number, growth: { share: number; mb: number }): number {
  return mb + Math.max(mb * growth.share, growth.mb)
}
