import { Badge, Group } from '@mantine/core'
import type { EventType } from './event-types.ts'

/** Whether the type is new, and whether its shape has changed. */
export function TypeFlags({ type: { flags } }: { type: EventType }) {
  if (flags.length === 0) return null
  return (
    <Group gap={4} wrap="nowrap" component="span" display="inline-flex">
      {flags.includes('DRIFT') && (
        <Badge size="sm" variant="light" color="yellow" tt="none">
          Drift
        </Badge>
      )}
      {flags.includes('NEW') && (
        <Badge size="sm" variant="default" tt="none">
          New
        </Badge>
      )}
    </Group>
  )
}
