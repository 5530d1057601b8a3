import { Alert, Button, Code, CopyButton, Group, Stack, Text } from '@mantine/core'
import { useSecretShown } from './SecretDialog.tsx'

/** A secret that is shown only once, with an example of its use. */
export function SecretBox({
  label,
  secret,
  storageNote = 'Annals stores only a hash. If you lose it, create a new one.',
  children,
}: {
  label: string
  secret: string
  /** How the service stores the secret, and what to do if it is lost. */
  storageNote?: string
  children?: React.ReactNode
}) {
  useSecretShown()
  return (
    <Alert
      color="yellow"
      variant="light"
      title={`${label}: copy it now, it won’t be shown again`}
      // Without this, commands that are wider than a phone would widen the box.
      styles={{ body: { minWidth: 0 } }}
    >
      <Stack gap="xs">
        <Group wrap="nowrap" align="center">
          <Code
            data-testid="secret"
            block
            style={{ flex: 1, minWidth: 0, whiteSpace: 'pre-wrap', wordBreak: 'break-all' }}
          >
            {secret}
          </Code>
          <CopyButton value={secret}>
            {({ copied, copy }) => (
              <Button size="xs" variant="default" onClick={copy} style={{ flexShrink: 0 }}>
                {copied ? 'Copied' : 'Copy'}
              </Button>
            )}
          </CopyButton>
        </Group>
        {children}
        <Text size="xs" className="soft">
          {storageNote}
        </Text>
      </Stack>
    </Alert>
  )
}
