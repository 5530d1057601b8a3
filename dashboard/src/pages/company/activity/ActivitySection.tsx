import { Skeleton, Stack, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { EmptyState } from '../../../parts/message/EmptyState.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { LoadMoreButton } from '../../../parts/table/LoadMoreButton.tsx'
import { NoAccess } from '../../../parts/message/NoAccess.tsx'
import { PageHeader } from '../../../parts/PageHeader.tsx'
import { usePages } from '../../../parts/table/use-pages.ts'
import { useSession } from '../../../api/session-context.tsx'
import { ActivityFilters } from './ActivityFilters.tsx'
import { ActivityTable } from './ActivityTable.tsx'
import { activityQuery, type ActivitySearch, readActivitySearch } from './activity-search.ts'

const route = getRouteApi('/shell/app/company/$section')
const PAGE_EVENTS = 50

/** The company's own audit log, from the system workspace. */
export function ActivitySection() {
  const { session, hasPermission } = useSession()
  const own = session.workspaces.find(({ kind }) => kind === 'SYSTEM')
  if (!hasPermission('activity.read') || !own) {
    return (
      <>
        <PageHeader title="Activity" />
        <NoAccess what="activity" />
      </>
    )
  }
  return (
    <>
      <PageHeader
        title="Activity"
        description="What members, API keys, the operator and Annals itself did, in a tamper-evident chain."
      >
        <AnchorLink to="/app/explorer" search={{ workspaceId: own.id }}>
          Open in Explorer
        </AnchorLink>
      </PageHeader>
      <ActivityPages workspaceId={own.id} />
    </>
  )
}

function ActivityPages({ workspaceId }: { workspaceId: string }) {
  const parameters = route.useSearch()
  const search = useMemo(() => readActivitySearch(parameters), [parameters])
  const navigate = route.useNavigate()
  return (
    <>
      <ActivityFilters
        search={search}
        onChange={(changed) => void navigate({ search: changed, replace: true })}
      />
      <ActivityList workspaceId={workspaceId} search={search} />
    </>
  )
}

function ActivityList({ workspaceId, search }: { workspaceId: string; search: ActivitySearch }) {
  // The start of the range stays the same for all pages, because a cursor is only valid for its filters.
  const filters = useMemo(() => activityQuery(search, Date.now()), [search])
  const { pages, items: events } = usePages(['activity', workspaceId, filters], (cursorQuery) => {
    const query = { workspaceId, limit: PAGE_EVENTS, ...filters, ...cursorQuery }
    return unwrap(client.GET('/dashboard/events', { params: { query } }))
  })
  if (pages.isPending) {
    return (
      <Stack gap={6} role="status" aria-label="Loading activity">
        {Array.from({ length: 8 }, (_, line) => (
          <Skeleton height={34} radius="sm" key={line} />
        ))}
      </Stack>
    )
  }
  if (pages.error) return <ErrorBox error={pages.error} onRetry={pages.refetch} />
  if (events.length === 0 && pages.hasNextPage) {
    return <LoadMoreButton pages={pages}>Show older activity</LoadMoreButton>
  }
  if (events.length === 0 && Object.keys(search).length > 0) {
    return (
      <Text size="sm" className="soft" py="lg">
        No activity matches these filters. Change them, or choose a longer time range.
      </Text>
    )
  }
  if (events.length === 0) {
    return (
      <EmptyState icon="activity" title="No recent activity">
        <Text size="sm" className="soft" ta="center" maw={440}>
          Every change and download is recorded, whether by a member or an API key. Older activity
          is archived, and you can export it.
        </Text>
      </EmptyState>
    )
  }
  return (
    <>
      <ActivityTable events={events} />
      <LoadMoreButton pages={pages}>Show older activity</LoadMoreButton>
    </>
  )
}
