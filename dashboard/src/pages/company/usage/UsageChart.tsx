import { Group, Paper, SegmentedControl, Skeleton, Text, Title } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { DailyBarChart } from '../../../parts/chart/DailyBarChart.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { pluralize } from '../../../parts/text/pluralize.ts'
import { byDay, MEASURES, type Measured, type Usage, useUsage } from './usage.ts'
import { type CompanySearch, type UsageDays, USAGE_DAYS } from './usage-search.ts'
import { WorkspaceUsageTable } from './WorkspaceUsageTable.tsx'

const route = getRouteApi('/shell/app/company/$section')
const CHART_PX = 200

/** Events or bytes received per day. */
export function UsageChart() {
  const { workspace } = useSession()
  const { days = 30, of: measured = 'events' } = route.useSearch()
  const navigate = route.useNavigate()
  const usage = useUsage(workspace?.id ?? null, days)
  const show = (search: CompanySearch) => void navigate({ search, replace: true })
  return (
    <Paper withBorder p="md" component="section" aria-labelledby="by-day">
      <Group justify="space-between" mb="sm" gap="xs">
        <Title order={2} id="by-day">
          Received per day{workspace && `, ${workspace.name}`}
        </Title>
        <Group gap="xs">
          <SegmentedControl<Measured>
            size="xs"
            aria-label="Unit"
            data={[
              { value: 'events', label: 'Events' },
              { value: 'bytes', label: 'Bytes' },
            ]}
            value={measured}
            onChange={(value) => show({ days, ...(value === 'bytes' && { of: value }) })}
          />
          <SegmentedControl<UsageDays>
            size="xs"
            aria-label="Period in days"
            data={USAGE_DAYS.map((value) => ({ value, label: `${value} d` }))}
            value={days}
            onChange={(value) =>
              show({ days: value, ...(measured === 'bytes' && { of: measured }) })
            }
          />
        </Group>
      </Group>
      <ErrorBox error={usage.error} onRetry={usage.refetch} />
      {usage.isPending && <Skeleton height={CHART_PX} radius="sm" />}
      {usage.data && <Bars usage={usage.data} measured={measured} days={days} />}
    </Paper>
  )
}

function Bars({ usage, measured, days }: { usage: Usage; measured: Measured; days: number }) {
  const bars = useMemo(
    () => byDay(usage, measured, { days, nowMs: Date.now() }),
    [usage, measured, days],
  )
  return (
    <>
      <DailyBarChart days={bars} measure={MEASURES[measured]} />
      <Text size="sm" className="soft numeric">
        Days are in UTC. Last minute: {pluralize(usage.eventsLastMinute, 'event')}
      </Text>
      <WorkspaceUsageTable usage={usage} />
    </>
  )
}
