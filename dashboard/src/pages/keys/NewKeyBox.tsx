import { Button, Group, Stack, Text } from '@mantine/core'
import { CodeBlock } from '../../parts/text/CodeBlock.tsx'
import { SecretBox } from '../../parts/dialog/SecretBox.tsx'
import type { Key, NewKey } from './keys.ts'

/** The only time that a key is shown, with a command that uses it. */
export function NewKeyBox({
  made,
  advice = null,
  onDone,
}: {
  made: NewKey
  /** What to do with the key, if a program is waiting for it. */
  advice?: string | null
  onDone: () => void
}) {
  const { key, secret } = made
  const sample = sampleOf(key.permissions, secret, window.location.origin)
  return (
    <Stack>
      <SecretBox label={`Key ${key.name}`} secret={secret}>
        {advice === null ? (
          <>
            <Text size="sm" mt="xs">
              {sample.label}
            </Text>
            <CodeBlock text={sample.command} label="command" />
          </>
        ) : (
          <Text size="sm">{advice}</Text>
        )}
      </SecretBox>
      <Group justify="flex-end">
        <Button onClick={onDone}>I’ve copied it</Button>
      </Group>
    </Stack>
  )
}

/** A command that the key is permitted to run. */
function sampleOf(permissions: Key['permissions'], secret: string, origin: string) {
  const authorization = `-H 'Authorization: Bearer ${secret}'`
  if (permissions.includes('events:write')) {
    const command = [
      `curl ${origin}/v1/events \\`,
      `  ${authorization} \\`,
      "  -H 'Content-Type: application/json' \\",
      `  -d '{"category":"billing","action":"invoice.deleted","actor":{"email":"ana@example.com"}}'`,
    ].join('\n')
    return { label: 'Send an event with it:', command }
  }
  const { label, path } = permissions.includes('events:read')
    ? { label: 'Read events with it:', path: '/v1/events?limit=10' }
    : { label: 'Check its status:', path: '/v1/keys/status' }
  return { label, command: `curl '${origin}${path}' \\\n  ${authorization}` }
}
