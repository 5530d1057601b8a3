import { Group, SegmentedControl, Skeleton, Stack, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { EmptyState } from '../../parts/EmptyState.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { formatCount } from '../../parts/format.ts'
import { LoadMoreButton } from '../../parts/LoadMoreButton.tsx'
import { EventTypeDrawer } from './EventTypeDrawer.tsx'
import { EventTypeHeader, EventTypeRow } from './EventTypeRow.tsx'
import { type EventType, useEventTypes } from './event-types.ts'
import { TYPE_FLAGS } from './event-types-search.ts'

const route = getRouteApi('/shell/app/event-types')
const ALL = 'ALL'
const FILTERS = [
  { value: ALL, label: 'All' },
  { value: 'DRIFT', label: 'Metadata drift' },
  { value: 'NEW', label: 'New' },
]

export function EventTypeList({ workspaceId }: { workspaceId: string }) {
  const { flag, category, action } = route.useSearch()
  const navigate = route.useNavigate()
  const { pages, items: types } = useEventTypes(workspaceId, flag)
  const first = pages.data?.pages[0]
  const open = (type: EventType | null) =>
    void navigate({
      search: {
        ...(flag && { flag }),
        ...(type && { workspaceId, category: type.category, action: type.action }),
      },
      resetScroll: false,
    })
  if (first && types.length === 0 && flag === undefined) return <NoTypes />
  return (
    <>
      <Group justify="space-between" mb="sm" gap="xs">
        <SegmentedControl
          size="xs"
          data={FILTERS}
          value={flag ?? ALL}
          onChange={(value) => {
            const chosen = TYPE_FLAGS.find((name) => name === value)
            void navigate({ search: chosen ? { flag: chosen } : {}, resetScroll: false })
          }}
          aria-label="Show"
        />
        <CountedText first={first} />
      </Group>
      <ErrorBox error={pages.error} onRetry={pages.refetch} />
      {pages.isPending && <ListSkeleton />}
      {types.length > 0 && <EventTypeHeader />}
      <Stack gap={0} role="list" aria-label="Event types, by category and action">
        {types.map((type) => (
          <EventTypeRow
            type={type}
            key={`${type.category}\0${type.action}`}
            onOpen={() => open(type)}
          />
        ))}
      </Stack>
      {first && types.length === 0 && (
        <Text size="sm" className="soft" py="lg">
          {flag === 'NEW'
            ? 'No type is new: none was first seen in the last 7 days.'
            : 'No type has metadata drift: no shape has changed in the last 30 days.'}
        </Text>
      )}
      <LoadMoreButton pages={pages}>Show more types</LoadMoreButton>
      {category !== undefined && action !== undefined && (
        <EventTypeDrawer
          workspaceId={workspaceId}
          category={category}
          action={action}
          onClose={() => open(null)}
        />
      )}
    </>
  )
}

/** How many events the counts cover, and whether types are missing. */
function CountedText({
  first,
}: {
  first: { truncated: boolean; fromSeq: number | null; upToSeq: number | null } | undefined
}) {
  if (!first || first.fromSeq === null || first.upToSeq === null) return null
  return (
    <Text size="xs" className="soft numeric">
      {first.truncated && 'Only the first 1,000 types are listed · '}
      Events {formatCount(first.fromSeq)} to {formatCount(first.upToSeq)}, including archived ones
    </Text>
  )
}

function NoTypes() {
  return (
    <EmptyState icon="braces" title="No event types yet">
      <Text size="sm" className="soft" ta="center" maw={460}>
        Types appear here within seconds of the first event, with the keys of its metadata.{' '}
        <AnchorLink underline="always" to="/app/explorer">
          Send an event
        </AnchorLink>{' '}
        to start.
      </Text>
    </EmptyState>
  )
}

function ListSkeleton() {
  return (
    <Stack gap={6} role="status" aria-label="Loading event types">
      {[1, 2, 3, 4, 5, 6].map((line) => (
        <Skeleton height={34} radius="sm" key={line} />
      ))}
    </Stack>
  )
}
