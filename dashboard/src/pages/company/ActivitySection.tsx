import { Button, Skeleton, Stack, Text } from '@mantine/core'
import { useInfiniteQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { EmptyState } from '../../parts/EmptyState.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { NoAccess } from '../../parts/NoAccess.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { useSigned } from '../../shell/session-context.tsx'
import { ActivityTable } from './ActivityTable.tsx'

const PAGE_EVENTS = 50

/** The dashboard's own audit: who did what in here. */
export function ActivitySection() {
  const { session, may } = useSigned()
  const own = session.workspaces.find(({ kind }) => kind === 'SYSTEM')
  if (!may('activity.read') || !own) {
    return (
      <>
        <PageHeader title="Activity" />
        <NoAccess what="the activity" />
      </>
    )
  }
  return (
    <>
      <PageHeader
        title="Activity"
        about="What people did in this dashboard. Each line is an event in the company’s own chain, so nobody can take it out unseen."
      >
        <AnchorLink to="/app/explorer" search={{ workspaceId: own.id }}>
          Open in the explorer
        </AnchorLink>
      </PageHeader>
      <ActivityPages workspaceId={own.id} />
    </>
  )
}

function ActivityPages({ workspaceId }: { workspaceId: string }) {
  const activity = useInfiniteQuery({
    queryKey: ['activity', workspaceId],
    queryFn: ({ pageParam }) =>
      unwrap(
        client.GET('/dashboard/events', {
          params: {
            query: {
              workspaceId,
              limit: PAGE_EVENTS,
              ...(pageParam !== null && { cursor: pageParam }),
            },
          },
        }),
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
  })
  if (activity.isPending) {
    return (
      <Stack gap={6} role="status" aria-label="Loading the activity">
        {Array.from({ length: 8 }, (_, line) => (
          <Skeleton height={34} radius="sm" key={line} />
        ))}
      </Stack>
    )
  }
  if (activity.error) return <ErrorBox error={activity.error} />
  const events = activity.data.pages.flatMap(({ data }) => data)
  if (events.length === 0) {
    return (
      <EmptyState icon="activity" title="Nothing in the time that your plan shows">
        <Text size="sm" className="soft">
          Older activity is in the archive; an export finds it.
        </Text>
      </EmptyState>
    )
  }
  return (
    <>
      <ActivityTable events={events} />
      {activity.hasNextPage && (
        <Button
          mt="sm"
          size="xs"
          variant="default"
          loading={activity.isFetchingNextPage}
          onClick={() => void activity.fetchNextPage()}
        >
          Show older activity
        </Button>
      )}
    </>
  )
}
