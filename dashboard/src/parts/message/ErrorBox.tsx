import { Alert, Button, Group, Text } from '@mantine/core'
import { ApiError } from '../../api/client.ts'
import { CopyableText } from '../text/CopyableText.tsx'

/** Shows the service's error message, which says what to do, and the trace id. */
export function ErrorBox({
  error,
  onRetry,
}: {
  error: Error | null
  /** Only for reads, which are safe to repeat. */
  onRetry?: () => unknown
}) {
  if (!error) return null
  const traceId = error instanceof ApiError ? error.traceId : null
  const details = error instanceof ApiError ? error.details : []
  return (
    <Alert color="red" variant="light" role="alert" title={error.message}>
      {details.map(({ path, message }) => (
        <Text size="sm" key={path}>
          {path} {message}
        </Text>
      ))}
      {traceId !== null && (
        <Group gap={6} className="soft">
          <Text size="xs">Trace ID</Text>
          <CopyableText text={traceId} />
        </Group>
      )}
      {onRetry && (
        <Button size="compact-xs" variant="default" mt="xs" onClick={() => void onRetry()}>
          Try again
        </Button>
      )}
    </Alert>
  )
}
