import { Group, Loader, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { CodeBlock } from '../../../parts/text/CodeBlock.tsx'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { followEvents } from '../event-source.ts'
import type { EventPage, ExplorerEvent } from '../explorer-event.ts'

/** The command that sends a first event, with a placeholder if the key is unknown. */
export function FirstEventCommand({ secret }: { secret: string | null }) {
  return <CodeBlock text={curlOf(secret ?? '<your key>', window.location.origin)} label="command" />
}

function curlOf(key: string, origin: string): string {
  return [
    `curl ${origin}/v1/events \\`,
    `  -H 'Authorization: Bearer ${key}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '{"category":"billing","action":"invoice.deleted","actor":{"email":"ana@example.com"},"resource":{"type":"invoice","id":"inv_91"}}'`,
  ].join('\n')
}

/** Waits for the first event and shows it as soon as it arrives, or shows one that already exists. */
export function FirstEventWatch({
  workspaceId,
  onEvent,
}: {
  workspaceId: string | undefined
  onEvent?: (event: ExplorerEvent) => void
}) {
  const { data: newest = null } = useNewestEvent(workspaceId)
  const [arrived, setArrived] = useState<ExplorerEvent | null>(null)
  useEffect(() => {
    setArrived(null)
    const stop = followEvents(workspaceId === undefined ? {} : { workspaceId }, {
      onEvent: setArrived,
      onGap: () => {},
      onState: () => {},
    })
    return stop
  }, [workspaceId])
  const event = arrived ?? newest
  useEffect(() => {
    if (event !== null) onEvent?.(event)
  }, [event, onEvent])
  return (
    <div role="status">
      {event === null ? (
        <Group gap="xs">
          <Loader size={14} aria-hidden="true" />
          <Text size="sm">Waiting for your first event…</Text>
        </Group>
      ) : (
        <Group gap="xs">
          <Text size="sm" component="span">
            <StatusText tone="good">{`Received ${event.action}`}</StatusText>
          </Text>
          <AnchorLink
            to="/app/explorer"
            search={{ workspaceId: event.workspaceId, event: event.id }}
          >
            View event
          </AnchorLink>
        </Group>
      )}
    </div>
  )
}

/**
 * The newest event of the workspace, or of all workspaces that the member sees. Null if there is none.
 */
function useNewestEvent(workspaceId: string | undefined) {
  return useQuery({
    queryKey: ['events', 'newest', workspaceId ?? null],
    queryFn: async () => {
      const query = { limit: 10, ...(workspaceId !== undefined && { workspaceId }) }
      const page: EventPage = await unwrap(client.GET('/dashboard/events', { params: { query } }))
      return page.data[0] ?? null
    },
    staleTime: 0,
  })
}
