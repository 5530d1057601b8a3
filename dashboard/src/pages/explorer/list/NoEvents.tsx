import { Stack, Text } from '@mantine/core'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { EmptyState } from '../../../parts/message/EmptyState.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import { useSession } from '../../../api/session-context.tsx'
import { FirstEventCommand, FirstEventWatch } from './FirstEvent.tsx'

/** Explains how to send the first event to a workspace that has none. */
export function NoEvents({
  workspaceId,
  onEvent,
}: {
  workspaceId: string | undefined
  onEvent: () => void
}) {
  const { hasPermission } = useSession()
  return (
    <EmptyState icon="activity" title="No events yet">
      <Stack gap="sm" maw={640} w="100%">
        <Text size="sm" className="soft" ta="center">
          Send an event with a workspace key. It appears here within a second.
        </Text>
        <FirstEventCommand secret={null} />
        {hasPermission('keys.manage') ? (
          <Text size="sm">
            Use a key from{' '}
            <AnchorLink underline="always" to="/app/keys">
              Keys
            </AnchorLink>
            , or let{' '}
            <AnchorLink underline="always" to="/app/welcome">
              the welcome page
            </AnchorLink>{' '}
            create one for you.
          </Text>
        ) : (
          <Text size="sm" className="soft">
            Ask an owner or admin of your company for a key.
          </Text>
        )}
        <FirstEventWatch workspaceId={workspaceId} onEvent={onEvent} />
      </Stack>
    </EmptyState>
  )
}

/** Shown if all events are archived. */
export function OnlyArchived({ count }: { count: number }) {
  return (
    <EmptyState icon="export" title="All events are archived">
      <Text size="sm" className="soft" ta="center" maw={440}>
        The archive contains {formatCount(count)} {count === 1 ? 'event' : 'events'}. To search it
        here, choose a period that reaches into it. Or{' '}
        <AnchorLink underline="always" to="/app/exports">
          export the events
        </AnchorLink>{' '}
        with the source “Archived”.
      </Text>
    </EmptyState>
  )
}
