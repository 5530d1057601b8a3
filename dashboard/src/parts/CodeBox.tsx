import { ActionIcon, Code, CopyButton, Group } from '@mantine/core'
import { Icon } from './Icon.tsx'

/** A command to run, ready to copy. */
export function CodeBox({ text, label }: { text: string; label: string }) {
  return (
    <Group wrap="nowrap" align="flex-start" gap="xs">
      <Code
        block
        style={{ flex: 1, minWidth: 0, whiteSpace: 'pre-wrap', wordBreak: 'break-word' }}
        tabIndex={0}
      >
        {text}
      </Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <ActionIcon
            variant="default"
            size="md"
            onClick={copy}
            aria-label={copied ? 'Copied' : `Copy ${label}`}
          >
            <Icon name={copied ? 'check' : 'copy'} size={14} />
          </ActionIcon>
        )}
      </CopyButton>
    </Group>
  )
}
