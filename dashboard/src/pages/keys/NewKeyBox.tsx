import { Button, Group, Stack, Text } from '@mantine/core'
import { CodeBlock } from '../../parts/CodeBlock.tsx'
import { SecretBox } from '../../parts/SecretBox.tsx'
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
  return (
    <Stack>
      <SecretBox label={`Key ${key.name}`} secret={secret}>
        {advice === null ? (
          <>
            <Text size="sm" mt="xs">
              {key.scope === 'WORKSPACE' ? 'Send an event with it:' : 'Read events with it:'}
            </Text>
            <CodeBlock text={curlFor(key.scope, secret, window.location.origin)} label="command" />
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

function curlFor(scope: Key['scope'], secret: string, origin: string): string {
  const authorization = `-H 'Authorization: Bearer ${secret}'`
  if (scope === 'COMPANY') return `curl '${origin}/v1/events?limit=10' \\\n  ${authorization}`
  return [
    `curl ${origin}/v1/events \\`,
    `  ${authorization} \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '{"category":"billing","action":"invoice.deleted","actor":{"email":"ana@example.com"}}'`,
  ].join('\n')
}
