import { Alert, Button, Code, CopyButton, Group, Stack, Text } from '@mantine/core'
import { useSecretShown } from './SecretDialog.tsx'

/** A secret that is shown once, with what it is good for. */
export function SecretBox({
  label,
  secret,
  keptAs = 'The service keeps a hash only. Whoever loses it makes a new one.',
  children,
}: {
  label: string
  secret: string
  /** What becomes of it, and of whoever loses it. */
  keptAs?: string
  children?: React.ReactNode
}) {
  useSecretShown()
  return (
    <Alert
      color="yellow"
      variant="light"
      title={`${label}: copy it now, it is not shown again`}
      // Commands are wider than a phone, and would widen the box beyond its edge.
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
          {keptAs}
        </Text>
      </Stack>
    </Alert>
  )
}
