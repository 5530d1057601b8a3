import { ActionIcon, Button, Group, PasswordInput, Stack, TextInput } from '@mantine/core'
import { Icon } from '../../../parts/Icon.tsx'

const HEADERS_MAX = 10

export type HeaderDraft = { name: string; value: string }

export function headersOf(drafts: readonly HeaderDraft[]): Record<string, string> {
  return Object.fromEntries(drafts.map(({ name, value }) => [name.trim(), value.trim()]))
}

/** The extra headers to send. Values are never shown again. */
export function HeaderFields({
  drafts,
  onChange,
}: {
  drafts: readonly HeaderDraft[]
  onChange: (drafts: HeaderDraft[]) => void
}) {
  const replace = (index: number, change: Partial<HeaderDraft>) =>
    onChange(drafts.map((draft, at) => (at === index ? { ...draft, ...change } : draft)))
  return (
    <Stack gap="xs">
      {drafts.map((draft, index) => (
        // Rows have no identity of their own, and every input is controlled.
        <Group key={index} gap="xs" align="flex-end" wrap="nowrap">
          <TextInput
            label="Header"
            placeholder="Authorization"
            required
            maxLength={64}
            flex={1}
            value={draft.name}
            onChange={(event) => replace(index, { name: event.currentTarget.value })}
          />
          <PasswordInput
            label="Value"
            required
            autoComplete="off"
            maxLength={1_024}
            flex={1}
            value={draft.value}
            onChange={(event) => replace(index, { value: event.currentTarget.value })}
          />
          <ActionIcon
            variant="default"
            size="input-sm"
            aria-label={`Remove header ${draft.name || index + 1}`}
            onClick={() => onChange(drafts.filter((_, at) => at !== index))}
          >
            <Icon name="trash" />
          </ActionIcon>
        </Group>
      ))}
      {drafts.length < HEADERS_MAX && (
        <Group>
          <Button
            size="xs"
            variant="default"
            onClick={() => onChange([...drafts, { name: '', value: '' }])}
          >
            Add header
          </Button>
        </Group>
      )}
    </Stack>
  )
}
