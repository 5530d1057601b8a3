import { ActionIcon, Code, CopyButton, Group } from '@mantine/core'
import classes from './CodeBlock.module.css'
import { Icon } from '../Icon.tsx'

/** A command with a copy button. */
export function CodeBlock({ text, label }: { text: string; label: string }) {
  return (
    <Group wrap="nowrap" align="flex-start" gap="xs">
      <Code block className={classes.code} tabIndex={0}>
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
