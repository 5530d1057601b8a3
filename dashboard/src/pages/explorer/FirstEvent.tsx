import { Group, Loader, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { CodeBox } from '../../parts/CodeBox.tsx'
import { StatusText } from '../../parts/StatusText.tsx'
import { followEvents } from './event-source.ts'
import type { ExplorerEvent } from './explorer-event.ts'

/** The command that sends a first event; a placeholder stands for a key that is not at hand. */
export function FirstEventCommand({ secret }: { secret: string | null }) {
  return (
    <CodeBox text={curlOf(secret ?? '<your key>', window.location.origin)} label="the command" />
  )
}

function curlOf(key: string, origin: string): string {
  return [
    `curl ${origin}/v1/events \\`,
    `  -H 'Authorization: Bearer ${key}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '{"category":"billing","action":"invoice.deleted","actor":{"email":"ana@example.com"},"resource":{"type":"invoice","id":"inv_91"}}'`,
  ].join('\n')
}

/** Waits, and shows the event the moment it is there. */
export function FirstEventWatch({
  workspaceId,
  onEvent,
}: {
  workspaceId: string | undefined
  onEvent?: (event: ExplorerEvent) => void
}) {
  const [event, setEvent] = useState<ExplorerEvent | null>(null)
  useEffect(() => {
    const stop = followEvents(workspaceId === undefined ? {} : { workspaceId }, {
      onEvent: (arrived) => {
        setEvent(arrived)
        onEvent?.(arrived)
      },
      onGap: () => {},
      onState: () => {},
    })
    return stop
  }, [workspaceId, onEvent])
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
            <StatusText tone="good">{`${event.action} has arrived.`}</StatusText>
          </Text>
          <AnchorLink
            to="/app/explorer"
            search={{ workspaceId: event.workspaceId, event: event.id }}
          >
            Look at it
          </AnchorLink>
        </Group>
      )}
    </div>
  )
}
