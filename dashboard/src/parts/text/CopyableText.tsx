import { ActionIcon, CopyButton, Group, Tooltip } from '@mantine/core'
import { Icon } from '../Icon.tsx'
import { shorten } from './shorten.ts'

/** An id or a hash, shortened in the middle. Hovering shows all of it, and copying copies all of it. */
export function CopyableText({ text, isFull = false }: { text: string; isFull?: boolean }) {
  return (
    <Group gap={4} wrap="nowrap" component="span" display="inline-flex">
      <Tooltip label={text} disabled={isFull} withinPortal>
        <span className="mono">{isFull ? text : shorten(text)}</span>
      </Tooltip>
      <CopyButton value={text} timeout={1_500}>
        {({ copied, copy }) => (
          <ActionIcon
            size="xs"
            variant="subtle"
            color={copied ? 'green' : 'gray'}
            onClick={copy}
            aria-label={copied ? 'Copied' : `Copy ${shorten(text)}`}
          >
            <Icon name={copied ? 'check' : 'copy'} size={12} />
          </ActionIcon>
        )}
      </CopyButton>
    </Group>
  )
}
