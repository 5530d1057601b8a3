import { Group, Paper, Text } from '@mantine/core'
import { formatDuration } from '../../../parts/text/format.ts'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { responseText } from './delivery-text.ts'
import { BodyText } from './BodyText.tsx'
import type { DeliveryDetail } from '../webhook-types.ts'

/** One attempt, and the receiver's response. */
export function AttemptBox({ attempt }: { attempt: DeliveryDetail['attempts'][number] }) {
  const isAccepted = attempt.message === null
  return (
    <Paper withBorder p="xs">
      <Group justify="space-between" gap="xs">
        <Text size="sm" fw={500}>
          Attempt {attempt.attempt}
        </Text>
        <Text size="sm" component="span">
          <StatusText tone={isAccepted ? 'good' : 'bad'}>
            {responseText(attempt) ?? 'no response'}
          </StatusText>
        </Text>
      </Group>
      <Text size="xs" className="soft">
        <TimeText at={attempt.startedAt} style="clock" /> · {formatDuration(attempt.durationMs)}
      </Text>
      {attempt.message && <Text size="sm">{attempt.message}</Text>}
      {attempt.excerpt && (
        <BodyText label={`Response to attempt ${attempt.attempt}`} text={attempt.excerpt} />
      )}
    </Paper>
  )
}
