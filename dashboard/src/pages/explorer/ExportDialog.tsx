import { Button, Group, Modal, Radio, Skeleton, Stack, Text } from '@mantine/core'
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import type { paths } from '../../api/schema.d.ts'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { formatBytes, formatCount } from '../../parts/text/format.ts'
import { pluralize } from '../../parts/text/pluralize.ts'
import { StatusText } from '../../parts/text/StatusText.tsx'
import { DownloadLinks } from '../exports/download/DownloadLink.tsx'
import { EvidenceNotes, EvidenceSwitch } from '../exports/form/EvidenceSwitch.tsx'
import { ExportName, nameBody } from '../exports/list/ExportName.tsx'
import type { Export } from '../exports/exports.ts'
import { timesOf } from './event-queries.ts'
import { bodyFilters, chipTexts } from '../../query/filter-bodies.ts'
import type { Chip, Filters } from '../../query/filters.ts'
import { type TimeWindow, windowText } from '../../query/time-window.ts'
import { type HotTime, reachesArchive } from './explorer-event.ts'

type Body = paths['/dashboard/exports']['post']['requestBody']['content']['application/json']
type Answer =
  paths['/dashboard/exports/preflight']['post']['responses'][200]['content']['application/json']

type ExportProps = {
  onClose: () => void
  filters: Filters
  chips: readonly Chip[]
  timeWindow: TimeWindow
  /** Events before this time may be archived. */
  hotTime: HotTime | null
}

/** Exports exactly the events of the current query, and shows the estimated size first. */
export function ExportDialog(props: ExportProps) {
  return (
    <Modal opened onClose={props.onClose} title="Export these events" centered>
      <ExportForm {...props} />
    </Modal>
  )
}

function ExportForm({ onClose, filters, chips, timeWindow, hotTime }: ExportProps) {
  const isAllHot = hotTime === null || !reachesArchive(hotTime, timeWindow, filters)
  const [format, setFormat] = useState<Body['format']>('JSONL')
  const [source, setSource] = useState<Body['source']>(isAllHot ? 'HOT' : 'HOT_AND_ARCHIVED')
  const [isComplete, setComplete] = useState(false)
  const [name, setName] = useState('')
  const body: Body = {
    source,
    format,
    ...(isComplete && format === 'JSONL' && { evidence: 'COMPLETE' }),
    filters: { ...bodyFilters(filters), ...timesOf(timeWindow) },
  }
  const preflight = useQuery({
    queryKey: ['exports', 'preflight', body],
    queryFn: () => unwrap(client.POST('/dashboard/exports/preflight', { body })),
    placeholderData: keepPreviousData,
  })
  const create = useMutation({
    mutationFn: () =>
      unwrap(client.POST('/dashboard/exports', { body: { ...nameBody(name), ...body } })),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['exports'] }),
  })
  if (create.data) {
    const { fitsDownload = false, needsRestore = true } = preflight.data ?? {}
    return <Created job={create.data} isReady={fitsDownload && !needsRestore} onClose={onClose} />
  }
  const what = chipTexts(chips)
  if (filters.text !== undefined) what.push(`containing “${filters.text}”`)
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        create.mutate()
      }}
    >
      <Stack>
        <Text size="sm">
          {what.length === 0 ? 'All events' : what.join(', ')} · {windowText(timeWindow)}
        </Text>
        <ExportName value={name} onChange={setName} />
        <RadioField label="Format" choices={FORMATS} value={format} onChange={setFormat} />
        <RadioField label="Source" choices={SOURCES} value={source} onChange={setSource} />
        {format === 'JSONL' && <EvidenceSwitch isOn={isComplete} onChange={setComplete} />}
        <ErrorBox error={preflight.error} />
        {preflight.isPending && <Skeleton height={44} />}
        {preflight.data && !preflight.error && <Estimate answer={preflight.data} />}
        <ErrorBox error={create.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <BusyButton
            type="submit"
            isBusy={create.isPending}
            disabled={preflight.data === undefined || preflight.error !== null}
          >
            Create export
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}

const FORMATS = [
  {
    value: 'JSONL',
    label: 'JSONL',
    description: 'One JSON object per line, with everything needed to verify the hashes.',
  },
  { value: 'CSV', label: 'CSV', description: 'For spreadsheets.' },
] as const
const SOURCES = [
  { value: 'HOT', label: 'Hot', description: 'Events in the explorer.' },
  {
    value: 'HOT_AND_ARCHIVED',
    label: 'Hot and archived',
    description: 'Also includes archived events.',
  },
  {
    value: 'ARCHIVED',
    label: 'Archived only',
    description: 'Only events that have left the explorer.',
  },
] as const

function RadioField<Value extends string>({
  label,
  choices,
  value,
  onChange,
}: {
  label: string
  choices: readonly { value: Value; label: string; description: string }[]
  value: Value
  onChange: (value: Value) => void
}) {
  return (
    <Radio.Group
      label={label}
      value={value}
      onChange={(text) => {
        const chosen = choices.find((choice) => choice.value === text)
        if (chosen) onChange(chosen.value)
      }}
    >
      <Stack gap={6} mt={4}>
        {choices.map((choice) => (
          <Radio
            key={choice.value}
            size="sm"
            data-autofocus={choice.value === value || undefined}
            value={choice.value}
            label={choice.label}
            description={choice.description}
          />
        ))}
      </Stack>
    </Radio.Group>
  )
}

/** The estimated size of the export, and what prevents it. */
function Estimate({ answer }: { answer: Answer }) {
  const { rows, stubs, evidence, isEstimate, estimatedBytes, rowLimit } = answer
  const { isCut, needsRestore, fitsDownload } = answer
  return (
    <Stack gap={2} role="status">
      <Text size="sm" className="numeric">
        {isEstimate && 'About '}
        <strong>{pluralize(Number(rows), 'row')}</strong>
        {stubs !== '0' && ` and ${pluralize(Number(stubs), 'stub')}`}, about{' '}
        {formatBytes(Number(estimatedBytes))}
      </Text>
      <Text size="sm" component="div">
        <EvidenceNotes answer={answer} />
      </Text>
      {isCut && evidence !== 'COMPLETE' && (
        <Text size="sm">
          <StatusText tone="warn">
            {`Your plan allows ${formatCount(Number(rowLimit))} rows. The export contains the first ones received.`}
          </StatusText>
        </Text>
      )}
      {needsRestore && (
        <Text size="sm">
          <StatusText tone="warn">
            Archived data must be restored first, which takes minutes to hours.
          </StatusText>
        </Text>
      )}
      {!fitsDownload && (
        <Text size="sm">
          <StatusText tone="warn">
            Too large to download in the browser. Use the API, which has no size limit.
          </StatusText>
        </Text>
      )}
    </Stack>
  )
}

type CreatedProps = {
  job: Export
  /** The browser can download it now. */
  isReady: boolean
  onClose: () => void
}

function Created({ job, isReady, onClose }: CreatedProps) {
  return (
    <Stack role="status">
      <Text size="sm">
        <StatusText tone="good">Export created.</StatusText> It contains the events stored so far.
        You can download it once, within seven days.
      </Text>
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
        <AnchorLink to="/app/exports">Go to Exports</AnchorLink>
        {isReady && <DownloadLinks job={job} onStart={() => {}} />}
      </Group>
    </Stack>
  )
}
