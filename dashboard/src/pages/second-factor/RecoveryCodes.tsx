import { Alert, Button, Code, CopyButton, Group, Stack, Text } from '@mantine/core'
import { useSession } from '../../api/session-context.tsx'
import { useSecretShown } from '../../parts/dialog/SecretDialog.tsx'

/** New recovery codes, which are shown only once. */
export function RecoveryCodes({ codes, onDone }: { codes: readonly string[]; onDone: () => void }) {
  useSecretShown()
  const { session } = useSession()
  const text = codes.join('\n')
  return (
    <Stack>
      <Alert
        color="yellow"
        variant="light"
        role="status"
        title="Recovery codes: save them now, they won’t be shown again"
      >
        <Stack gap="xs">
          <Text size="sm">
            If you lose your authenticator app, sign in with one of these instead of a code. Each
            works once. Keep them where you keep your passwords.
          </Text>
          <Code block data-testid="recovery-codes" style={{ columns: '2 170px' }}>
            {text}
          </Code>
          <Group gap="xs">
            <CopyButton value={text}>
              {({ copied, copy }) => (
                <Button size="xs" variant="default" onClick={copy}>
                  {copied ? 'Copied' : 'Copy codes'}
                </Button>
              )}
            </CopyButton>
            <Button
              size="xs"
              variant="default"
              onClick={() =>
                saveFile(`Recovery codes of ${session.user.email} for Annals\n\n${text}\n`)
              }
            >
              Download codes
            </Button>
          </Group>
        </Stack>
      </Alert>
      <Group justify="flex-end">
        <Button onClick={onDone}>I’ve saved them</Button>
      </Group>
    </Stack>
  )
}

function saveFile(text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }))
  const link = document.createElement('a')
  link.href = url
  link.download = 'annals-recovery-codes.txt'
  link.click()
  URL.revokeObjectURL(url)
}
