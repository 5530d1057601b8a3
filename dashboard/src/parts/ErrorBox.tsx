import { Alert, Group, Text } from '@mantine/core'
import { ApiError } from '../api/client.ts'
import { CopyText } from './CopyText.tsx'

/** A failure in the service's own words, which say what to do, with the number to quote. */
export function ErrorBox({ error }: { error: Error | null }) {
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
          <Text size="xs">Trace id</Text>
          <CopyText text={traceId} />
        </Group>
      )}
    </Alert>
  )
}
