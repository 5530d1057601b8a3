import { Button, Stack, Text } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { EmptyState } from '../../../parts/message/EmptyState.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import { countEvents, timesOf } from '../event-queries.ts'
import {
  type Chip,
  chipKey,
  clearPatch,
  type Filters,
  labelOf,
  removePatch,
} from '../../../query/filters.ts'
import { withoutChip } from '../../../query/filter-bodies.ts'
import { rangePatch, type TimeWindow, windowText } from '../../../query/time-window.ts'
import type { Change } from '../use-explorer.ts'

type EmptyProps = {
  filters: Filters
  chips: readonly Chip[]
  timeWindow: TimeWindow
  change: Change
}

/**
 * Shown if no event matches. Offers to remove each filter, with the number of events that would match.
 */
export function EmptyResult({ filters, chips, timeWindow, change }: EmptyProps) {
  const all: Chip[] = [...chips]
  const { text } = filters
  if (text !== undefined) {
    all.push({ field: 'text', excluded: null, label: 'text', value: text, raw: text })
  }
  const counts = useQueries({
    queries: all.map((chip) => {
      const others = withoutChip(filters, chip)
      return {
        queryKey: ['events', 'without', others, timesOf(timeWindow)],
        queryFn: () => countEvents(others, timeWindow),
        // A text search reads every event, so several such counts at once would be too expensive.
        enabled: others.text === undefined,
      }
    }),
  })
  const isLong = timeWindow.range === '90d' || timeWindow.range === 'allTime'
  return (
    <EmptyState icon="search" title={`No events: ${windowText(timeWindow)}`}>
      <Text size="sm" className="soft">
        {all.length === 0
          ? 'There are no events in this period.'
          : all.length === 1
            ? 'Try removing the filter:'
            : 'No events match all filters. Try removing one:'}
      </Text>
      <Stack gap={6} align="center">
        {all.map((chip, index) => (
          <Button
            key={chipKey(chip)}
            size="compact-sm"
            variant="default"
            onClick={() => change(removePatch(chip))}
          >
            Remove {labelOf(chip)}:{' '}
            {chip.value.length > 40 ? `${chip.value.slice(0, 40)}…` : chip.value}
            <CountText count={counts[index]?.data} />
          </Button>
        ))}
        {all.length > 1 && (
          <Button size="compact-sm" variant="subtle" onClick={() => change(clearPatch())}>
            Clear filters
          </Button>
        )}
        {!isLong && (
          <Button size="compact-sm" variant="subtle" onClick={() => change(rangePatch('90d'))}>
            Show last 90 days
          </Button>
        )}
      </Stack>
    </EmptyState>
  )
}

function CountText({ count }: { count: number | undefined }) {
  if (count === undefined) return null
  return (
    <Text span size="xs" className="soft numeric" ml={8}>
      {formatCount(count)} {count === 1 ? 'event' : 'events'}
    </Text>
  )
}
