import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import type { paths } from '../../../api/schema.d.ts'
import type { DayCount, Measure } from '../../../parts/chart/DailyBarChart.tsx'
import { formatBytes } from '../../../parts/text/format.ts'
import { lastDays } from '../../../parts/time/utc-day.ts'
import { pluralize } from '../../../parts/text/pluralize.ts'
import type { UsageDays } from './usage-search.ts'

export type Usage =
  paths['/dashboard/usage']['get']['responses'][200]['content']['application/json']
export type Measured = 'events' | 'bytes'

const SHORT = new Intl.NumberFormat('en', { notation: 'compact' })

export const MEASURES: Record<Measured, Measure> = {
  events: {
    format: (count) => pluralize(count, 'event'),
    formatShort: (count) => SHORT.format(count),
  },
  bytes: { format: formatBytes, formatShort: formatBytes },
}

export function useUsage(workspaceId: string | null, days: UsageDays) {
  return useQuery({
    queryKey: ['usage', workspaceId, days],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/usage', {
          params: { query: { days, ...(workspaceId !== null && { workspaceId }) } },
        }),
      ),
    placeholderData: keepPreviousData,
  })
}

/** Totals per day over all workspaces. The service leaves out days without events, so they count as 0. */
export function byDay(
  usage: Usage,
  measured: Measured,
  { days, nowMs }: { days: number; nowMs: number },
): DayCount[] {
  const counts = new Map<number, number>()
  for (const row of usage.days) {
    const dayMs = Date.parse(row.day)
    counts.set(dayMs, (counts.get(dayMs) ?? 0) + row[measured])
  }
  return lastDays(days, nowMs).map((dayMs) => ({ dayMs, count: counts.get(dayMs) ?? 0 }))
}

type WorkspaceUsage = { workspaceId: string; events: number; bytes: number }

/** Totals per workspace over the whole period, busiest first. */
export function byWorkspace({ days }: Usage): WorkspaceUsage[] {
  const sums = new Map<string, WorkspaceUsage>()
  for (const { workspaceId, events, bytes } of days) {
    const sum = sums.get(workspaceId) ?? { workspaceId, events: 0, bytes: 0 }
    sums.set(workspaceId, { workspaceId, events: sum.events + events, bytes: sum.bytes + bytes })
  }
  return [...sums.values()].toSorted((one, other) => other.events - one.events)
}
