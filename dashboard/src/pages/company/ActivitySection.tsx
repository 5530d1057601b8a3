import { Skeleton, Stack, Text } from '@mantine/core'
import { client, unwrap } from '../../api/client.ts'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { EmptyState } from '../../parts/EmptyState.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { LoadMoreButton } from '../../parts/LoadMoreButton.tsx'
import { NoAccess } from '../../parts/NoAccess.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { usePages } from '../../parts/use-pages.ts'
import { useSession } from '../../api/session-context.tsx'
import { ActivityTable } from './ActivityTable.tsx'

const PAGE_EVENTS = 50

/** The audit log of the dashboard itself, from the system workspace. */
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
        description="What members and API keys changed or downloaded. Each entry is an event in a tamper-evident chain."
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
  const { pages, items: events } = usePages(['activity', workspaceId], (cursorQuery) => {
    const query = { workspaceId, limit: PAGE_EVENTS, ...cursorQuery }
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
