import { Select, SimpleGrid, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { fromInputTime, toInputTime } from '../../../parts/time/input-time.ts'
import { useTimeZone } from '../../../parts/time/time-zone.ts'
import { TimeInput } from '../../../parts/time/TimeInput.tsx'
import { type Draft, lacksRange, RANGE_MISSING_TEXT } from './draft.ts'
import { EXPORT_RANGES, isExportRange } from '../export-text.ts'

const RANGES = Object.entries(EXPORT_RANGES).map(([value, { label }]) => ({ value, label }))
const DAY_MS = 86_400_000

/** The period, by the events' timestamps: a relative range, exact times, or none if none is required. */
export function TimeFields({
  draft,
  onChange,
}: {
  draft: Draft
  onChange: (draft: Draft) => void
}) {
  const { source, time, from, to } = draft
  const timeZone = useTimeZone()
  const choose = (value: string | null) => {
    if (value === 'exact') onChange({ ...draft, time: 'exact', ...exactStart(draft) })
    else if (value === 'all') onChange({ ...draft, time: 'all' })
    else if (value !== null && isExportRange(value)) onChange({ ...draft, time: value })
  }
  return (
    <Stack gap="xs">
      <Select
        label="Time range"
        error={lacksRange(draft) ? RANGE_MISSING_TEXT : undefined}
        allowDeselect={false}
        data={[
          { value: 'all', label: 'All time', disabled: source !== 'HOT' },
          ...RANGES,
          { value: 'exact', label: 'Custom range…' },
        ]}
        value={time}
        onChange={choose}
      />
      {time === 'exact' && (
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <ExactTime label="From" at={from} onChange={(at) => onChange({ ...draft, from: at })} />
          <ExactTime
            label="To (exclusive)"
            at={to}
            onChange={(at) => onChange({ ...draft, to: at })}
          />
          <Text size="xs" className="soft">
            Time zone: {timeZone}
          </Text>
        </SimpleGrid>
      )}
    </Stack>
  )
}

function ExactTime({
  label,
  at,
  onChange,
}: {
  label: string
  at: string | null
  onChange: (at: string | null) => void
}) {
  const [text, setText] = useState(at === null ? '' : toInputTime(at))
  const enter = (entered: string) => {
    setText(entered)
    onChange(fromInputTime(entered))
  }
  return <TimeInput label={label} value={text} onChange={enter} />
}

/** Defaults to the previous full day. */
function exactStart({ from, to }: Draft): { from: string; to: string } {
  const midnightOf = (ms: number) => fromInputTime(toInputTime(ms).slice(0, 10)) ?? ''
  const today = midnightOf(Date.now())
  return { from: from ?? midnightOf(Date.parse(today) - DAY_MS / 2), to: to ?? today }
}
