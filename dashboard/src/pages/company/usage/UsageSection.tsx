import { SimpleGrid, Skeleton, Stack } from '@mantine/core'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { PageHeader } from '../../../parts/PageHeader.tsx'
import { LimitList } from './LimitList.tsx'
import { useCompany } from '../company.ts'
import { PlanSummary } from './PlanSummary.tsx'
import { UsageChart } from './UsageChart.tsx'

/** The plan of the company, and how much of it is used. */
export function UsageSection() {
  const company = useCompany()
  return (
    <>
      <PageHeader
        title="Plan and usage"
        description="Events received, what your plan includes, and how much of each limit is used."
      />
      <Stack gap="md">
        <ErrorBox error={company.error} onRetry={company.refetch} />
        <UsageChart />
      </Stack>
      {company.isPending && <Skeleton height={220} radius="sm" mt="md" />}
      {company.data && (
        <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md" mt="md">
          <PlanSummary plan={company.data.plan} />
          <LimitList company={company.data} />
        </SimpleGrid>
      )}
    </>
  )
}
