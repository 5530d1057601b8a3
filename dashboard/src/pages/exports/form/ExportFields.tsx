import {
  Input,
  NumberInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Text,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { formatCount } from '../../../parts/text/format.ts'
import { useSession } from '../../../api/session-context.tsx'
import { readExclusion } from '../../../query/exclusions.ts'
import type { Draft } from './draft.ts'
import { FORMAT_DESCRIPTIONS, SOURCE_LABELS } from '../export-text.ts'
import { type ExportBody, useCapabilities } from '../exports.ts'
import { EvidenceSwitch } from './EvidenceSwitch.tsx'
import { FilterLines } from './FilterLines.tsx'
import { TimeFields } from './TimeFields.tsx'

const ALL = 'all'
const SOURCES: readonly ExportBody['source'][] = ['HOT', 'ARCHIVED', 'HOT_AND_ARCHIVED']
const FORMATS: readonly ExportBody['format'][] = ['JSONL', 'CSV']

type FieldsProps = { draft: Draft; onChange: (draft: Draft) => void }

/** The fields of an export or a template. */
export function ExportFields({ draft, onChange }: FieldsProps) {
  const { data: capabilities } = useCapabilities()
  return (
    <Stack>
      <SimpleGrid cols={{ base: 1, xs: 2 }}>
        <SourceField draft={draft} onChange={onChange} />
        <FormatField draft={draft} onChange={onChange} />
        <WorkspaceField draft={draft} onChange={onChange} />
        <NumberInput
          label="Row limit"
          placeholder={
            capabilities?.rowLimit
              ? `${formatCount(Number(capabilities.rowLimit))} (plan limit)`
              : ''
          }
          min={1}
          max={Number.MAX_SAFE_INTEGER}
          allowDecimal={false}
          allowNegative={false}
          thousandSeparator=","
          hideControls
          value={draft.limit ?? ''}
          onChange={(value) =>
            onChange({ ...draft, limit: typeof value === 'number' && value >= 1 ? value : null })
          }
        />
      </SimpleGrid>
      <TimeFields draft={draft} onChange={onChange} />
      <FilterLines draft={draft} onChange={onChange} />
      <ViewField draft={draft} onChange={onChange} />
      {draft.format === 'JSONL' && (
        <EvidenceSwitch
          isOn={draft.isComplete}
          onChange={(isComplete) => onChange({ ...draft, isComplete })}
        />
      )}
    </Stack>
  )
}

function SourceField({ draft, onChange }: FieldsProps) {
  const { data: capabilities } = useCapabilities()
  return (
    <Input.Wrapper label="Source" labelElement="div">
      <SegmentedControl
        fullWidth
        aria-label="Source"
        data={SOURCES.map((source) => ({
          value: source,
          label: SOURCE_LABELS[source].label,
          disabled: capabilities !== undefined && !capabilities.sources.includes(source),
        }))}
        value={draft.source}
        onChange={(value) => {
          onChange({ ...draft, source: SOURCES.find((name) => name === value) ?? 'HOT' })
        }}
      />
      <Text size="xs" className="soft" mt={4}>
        {SOURCE_LABELS[draft.source].description}
      </Text>
    </Input.Wrapper>
  )
}

function FormatField({ draft, onChange }: FieldsProps) {
  const { data: capabilities } = useCapabilities()
  return (
    <Input.Wrapper label="Format" labelElement="div">
      <SegmentedControl
        fullWidth
        aria-label="Format"
        data={FORMATS.map((format) => ({
          value: format,
          label: format,
          disabled: capabilities !== undefined && !capabilities.formats.includes(format),
        }))}
        value={draft.format}
        onChange={(value) => {
          const format = FORMATS.find((name) => name === value) ?? 'JSONL'
          onChange({ ...draft, format })
        }}
      />
      <Text size="xs" className="soft" mt={4}>
        {FORMAT_DESCRIPTIONS[draft.format]}
      </Text>
    </Input.Wrapper>
  )
}

function WorkspaceField({ draft, onChange }: FieldsProps) {
  const { session } = useSession()
  const options = session.workspaces.map(({ id, name }) => ({ value: id, label: name }))
  return (
    <Select
      label="Workspace"
      allowDeselect={false}
      searchable={options.length > 8}
      data={[{ value: ALL, label: 'All workspaces' }, ...options]}
      value={draft.workspaceId ?? ALL}
      onChange={(value) => {
        const workspaceId = value === ALL ? null : value
        // A project belongs to one workspace, so its filters are removed.
        const lines = draft.lines.filter(({ field }) => field !== 'projectId')
        const not = draft.not.filter((text) => readExclusion(text)?.field !== 'projectId')
        onChange({ ...draft, workspaceId, lines, not })
      }}
    />
  )
}

/** Hidden if there are no views. */
function ViewField({ draft, onChange }: FieldsProps) {
  const { data } = useQuery({
    queryKey: ['views'],
    queryFn: () => unwrap(client.GET('/dashboard/explorer/views')),
    staleTime: 30_000,
  })
  const usable = (data?.views ?? []).filter(({ isUsable }) => isUsable)
  const isLost = draft.viewId !== null && !usable.some(({ id }) => id === draft.viewId)
  if (usable.length === 0 && !isLost) return null
  return (
    <Select
      label="Saved view"
      description="Applies the filters of the view. Filters set above take precedence."
      placeholder="None"
      clearable
      clearButtonProps={{ 'aria-label': 'Clear saved view' }}
      data={usable.map(({ id, name }) => ({ value: id, label: name }))}
      value={draft.viewId}
      error={data && isLost ? 'The view was deleted. Choose another one, or none.' : undefined}
      onChange={(viewId) => onChange({ ...draft, viewId })}
    />
  )
}
