import { Group, Select, Skeleton, Stack, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { EmptyState } from '../../parts/message/EmptyState.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../parts/text/format.ts'
import { LoadMoreButton } from '../../parts/table/LoadMoreButton.tsx'
import { EventTypeHeader, EventTypeRow } from './EventTypeRow.tsx'
import { type EventTypePage, useEventTypes } from './event-types.ts'
import { TYPE_FLAGS } from './event-types-search.ts'

const route = getRouteApi('/shell/app/event-types')
const ALL = 'ALL'
const FILTERS = [
  { value: ALL, label: 'All types' },
  { value: 'DRIFT', label: 'Metadata drift' },
  { value: 'NEW', label: 'New types' },
]

export function EventTypeList({ workspaceId }: { workspaceId: string }) {
  const { flag } = route.useSearch()
  const navigate = route.useNavigate()
  const { pages, items: types } = useEventTypes(workspaceId, flag)
  const first = pages.data?.pages[0]
  if (first && types.length === 0 && flag === undefined) return <NoTypes />
  return (
    <>
      <Group justify="space-between" mb="sm" gap="xs">
        <Select
          aria-label="Filter by flag"
          size="xs"
          w={180}
          allowDeselect={false}
          data={FILTERS}
          value={flag ?? ALL}
          onChange={(value) => {
            const chosen = TYPE_FLAGS.find((name) => name === value)
            void navigate({ search: chosen ? { flag: chosen } : {} })
          }}
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
            search={{
              ...(flag && { flag }),
              workspaceId,
              category: type.category,
              action: type.action,
            }}
          />
        ))}
      </Stack>
      {first && types.length === 0 && (
        <Text size="sm" className="soft" py="lg">
          {flag === 'NEW'
            ? 'No new types in the last 7 days.'
            : 'No metadata drift in the last 30 days.'}
        </Text>
      )}
      <LoadMoreButton pages={pages}>Show more types</LoadMoreButton>
    </>
  )
}

/** How many events the counts cover, and whether types are missing. */
function CountedText({ first }: { first: EventTypePage | undefined }) {
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
