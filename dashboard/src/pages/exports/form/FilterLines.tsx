import { ActionIcon, Autocomplete, Button, Group, Input, Select, Stack, Text } from '@mantine/core'
import { Icon } from '../../../parts/Icon.tsx'
import { readExclusion } from '../../../query/exclusions.ts'
import type { FilterField } from '../../../query/filter-fields.ts'
import { exclusionLabel } from '../../../query/filter-bodies.ts'
import { FIELD_LABELS } from '../../../query/filters.ts'
import { readMetadata } from '../../../query/metadata.ts'
import { hasReceived, receivedText } from '../../../query/received.ts'
import { DRAFT_FIELDS, type Draft, type DraftField, type FilterLine } from './draft.ts'
import { useCapabilities } from '../exports.ts'
import classes from './FilterLines.module.css'
import { useProjectNames } from './project-names.ts'
import { ProjectSelect } from './ProjectSelect.tsx'
import { useSuggestions } from './use-suggestions.ts'

const LABELS: Record<DraftField, string> = {
  ...FIELD_LABELS,
  actorRole: 'actor role',
  text: 'contains text',
}

/**
 * One line per filter, each field at most once, and the lists of values and exclusions taken over from the
 * explorer.
 */
export function FilterLines({
  draft,
  onChange,
}: {
  draft: Draft
  onChange: (draft: Draft) => void
}) {
  const { data: capabilities } = useCapabilities()
  const { lines, received, anyOf, not, metadata, workspaceId } = draft
  const listed = [...Object.keys(received), ...anyOf, ...not, ...metadata]
  const free = DRAFT_FIELDS.filter((field) => lines.every((line) => line.field !== field))
  const [next] = free
  const setLines = (changed: readonly FilterLine[]) => onChange({ ...draft, lines: changed })
  const isBroken = capabilities !== undefined && !capabilities.filteredHot
  return (
    <Input.Wrapper label="Filters" labelElement="div">
      <Stack gap={6}>
        {lines.length === 0 && listed.length === 0 && (
          <Text size="xs" className="soft">
            No filters: all events in this period.
          </Text>
        )}
        {lines.map((line, nth) => (
          <FilterLineRow
            key={line.field}
            line={line}
            nth={nth}
            free={free}
            workspaceId={workspaceId}
            onChange={(changed) => setLines(lines.with(nth, changed))}
            onRemove={() => setLines(lines.toSpliced(nth, 1))}
          />
        ))}
        <ListedLines draft={draft} onChange={onChange} />
        <Group gap="xs">
          <Button
            size="compact-xs"
            variant="default"
            leftSection={<Icon name="plus" size={12} />}
            disabled={next === undefined || isBroken}
            onClick={() => next && setLines([...lines, { field: next, value: '' }])}
          >
            Add filter
          </Button>
          {isBroken && (
            <Text size="xs" className="soft">
              {capabilities.reason}
            </Text>
          )}
        </Group>
      </Stack>
    </Input.Wrapper>
  )
}

/** The values that the form can only remove. */
function ListedLines({ draft, onChange }: { draft: Draft; onChange: (draft: Draft) => void }) {
  const { received, anyOf, not, metadata } = draft
  return (
    <>
      {hasReceived(received) && (
        <ValueLine
          label="received"
          shown={receivedText(received)}
          onRemove={() => onChange({ ...draft, received: {} })}
        />
      )}
      {anyOf.map((text) => (
        <ListedLine
          key={text}
          text={text}
          labelOf={(field) => `${FIELD_LABELS[field]} (any of)`}
          onRemove={() => onChange({ ...draft, anyOf: anyOf.filter((other) => other !== text) })}
        />
      ))}
      {not.map((text) => (
        <ListedLine
          key={`not ${text}`}
          text={text}
          labelOf={exclusionLabel}
          onRemove={() => onChange({ ...draft, not: not.filter((other) => other !== text) })}
        />
      ))}
      {metadata.map((text) => (
        <MetadataLine
          key={`metadata ${text}`}
          text={text}
          onRemove={() =>
            onChange({ ...draft, metadata: metadata.filter((other) => other !== text) })
          }
        />
      ))}
    </>
  )
}

function FilterLineRow({
  line,
  nth,
  free,
  workspaceId,
  onChange,
  onRemove,
}: {
  line: FilterLine
  nth: number
  /** The fields that no line has yet. */
  free: readonly DraftField[]
  workspaceId: string | null
  onChange: (line: FilterLine) => void
  onRemove: () => void
}) {
  return (
    <Group gap={6} wrap="nowrap" className={classes.line}>
      <Select
        aria-label={`Filter ${nth + 1} field`}
        className={classes.field}
        allowDeselect={false}
        data={DRAFT_FIELDS.filter((field) => field === line.field || free.includes(field)).map(
          (field) => ({ value: field, label: LABELS[field] }),
        )}
        value={line.field}
        onChange={(value) => {
          const field = DRAFT_FIELDS.find((name) => name === value) ?? line.field
          onChange({ field, value: '' })
        }}
      />
      <ValueField
        line={line}
        workspaceId={workspaceId}
        onChange={(value) => onChange({ ...line, value })}
      />
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={`Remove filter ${LABELS[line.field]}`}
        onClick={onRemove}
      >
        <Icon name="close" size={14} />
      </ActionIcon>
    </Group>
  )
}

/** One of several values, or an excluded one. */
function ListedLine({
  text,
  labelOf,
  onRemove,
}: {
  text: string
  labelOf: (field: FilterField) => string
  onRemove: () => void
}) {
  const listed = readExclusion(text)
  const projectName = useProjectNames(listed?.field === 'projectId')
  if (listed === null) return null
  const { field, value } = listed
  const shown = field === 'projectId' ? projectName(value) : value
  return <ValueLine label={labelOf(field)} shown={shown} onRemove={onRemove} />
}

function MetadataLine({ text, onRemove }: { text: string; onRemove: () => void }) {
  const filter = readMetadata(text)
  if (filter === null) return null
  const { path, value } = filter
  return <ValueLine label={`metadata.${path}`} shown={value ?? 'exists'} onRemove={onRemove} />
}

function ValueLine({
  label,
  shown,
  onRemove,
}: {
  label: string
  shown: string
  onRemove: () => void
}) {
  return (
    <Group gap={6} wrap="nowrap" className={classes.line}>
      <Text size="sm" className={classes.field} truncate title={label}>
        {label}
      </Text>
      <Text size="sm" className={classes.value} truncate title={shown}>
        {shown}
      </Text>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label={`Remove filter ${label}: ${shown}`}
        onClick={onRemove}
      >
        <Icon name="close" size={14} />
      </ActionIcon>
    </Group>
  )
}

type ValueProps = {
  line: FilterLine
  workspaceId: string | null
  onChange: (value: string) => void
}

function ValueField({ line, workspaceId, onChange }: ValueProps) {
  if (line.field === 'projectId') {
    return (
      <ProjectSelect
        className={classes.value}
        workspaceId={workspaceId}
        value={line.value}
        onChange={onChange}
      />
    )
  }
  return <SuggestedValue line={line} workspaceId={workspaceId} onChange={onChange} />
}

function SuggestedValue({ line: { field, value }, workspaceId, onChange }: ValueProps) {
  const suggestions = useSuggestions(field, value, workspaceId)
  return (
    <Autocomplete
      aria-label={LABELS[field]}
      className={classes.value}
      data={suggestions}
      // The service has already filtered the suggestions.
      filter={({ options }) => options}
      maxLength={512}
      value={value}
      onChange={onChange}
      data-autofocus
    />
  )
}
