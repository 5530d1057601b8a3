import { SimpleGrid, Text, Textarea } from '@mantine/core'
import { FILTER_FIELDS, FILTER_LABELS, type FilterDraft } from './filter-draft.ts'

/** Which events a webhook sends. */
export function FilterFields({
  draft,
  onChange,
}: {
  draft: FilterDraft
  onChange: (draft: FilterDraft) => void
}) {
  return (
    <div>
      <Text size="sm" className="soft" mb={4}>
        Only matching events are sent. Enter one value per line. End a value with * to match
        everything that starts with it, such as invoice.*
      </Text>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="xs" verticalSpacing="xs">
        {FILTER_FIELDS.map((field) => (
          <Textarea
            key={field}
            label={FILTER_LABELS[field]}
            placeholder="Any"
            rows={2}
            value={draft[field]}
            onChange={(event) => onChange({ ...draft, [field]: event.currentTarget.value })}
          />
        ))}
      </SimpleGrid>
    </div>
  )
}
