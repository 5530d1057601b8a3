import { Button, Group, Modal, SimpleGrid, Stack, Text } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { fromInputTime, toInputTime } from '../../../parts/time/input-time.ts'
import { useTimeZone } from '../../../parts/time/time-zone.ts'
import { TimeInput } from '../../../parts/time/TimeInput.tsx'
import { TimeZoneSelect } from '../../../parts/time/TimeZoneSelect.tsx'
import { windowText } from '../../../query/time-window.ts'
import { Calendar, type DayRange } from './Calendar.tsx'

type CustomRangeProps = {
  isOpen: boolean
  onClose: () => void
  title: string
  /** What the form shows first. */
  times: DayRange
  onApply: (times: DayRange) => void
}

/** Sets the start and the end of a period: days in a calendar, or times to the second. */
export function CustomRange({ isOpen, title, ...props }: CustomRangeProps) {
  return (
    <Modal opened={isOpen} onClose={props.onClose} title={title} size={520} centered>
      {isOpen && <CustomRangeForm {...props} />}
    </Modal>
  )
}

function CustomRangeForm({
  times: first,
  onApply,
  onClose,
}: Omit<CustomRangeProps, 'isOpen' | 'title'>) {
  const { times, texts, chooseTimes, enterText, timeZone } = useTimes(first)
  const isOrdered = times.fromMs < times.toMs
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!isOrdered) return
    onApply(times)
    onClose()
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <Calendar key={timeZone} times={times} onChange={chooseTimes} />
        <SimpleGrid cols={{ base: 1, xs: 2 }}>
          <TimeInput
            label="From"
            value={texts.from}
            onChange={(from) => enterText({ from })}
            isRequired
          />
          <TimeInput
            label="To (exclusive)"
            value={texts.to}
            onChange={(to) => enterText({ to })}
            error={times.fromMs >= times.toMs && 'The end must be after the start.'}
            isRequired
          />
        </SimpleGrid>
        <Group justify="space-between" gap="xs">
          <Text size="sm" className="numeric" role="status">
            {isOrdered && windowText({ ...times, range: null })}
          </Text>
          <TimeZoneSelect className="soft" />
        </Group>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" disabled={!isOrdered}>
            Apply range
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

/** The times, and the texts of their inputs, which follow the time zone. */
function useTimes({ fromMs, toMs }: DayRange) {
  const timeZone = useTimeZone()
  const [times, setTimes] = useState<DayRange>({ fromMs, toMs })
  const [texts, setTexts] = useState(() => ({ ...textsOf(times), timeZone }))
  if (texts.timeZone !== timeZone) setTexts({ ...textsOf(times), timeZone })
  const chooseTimes = (chosen: DayRange) => {
    setTimes(chosen)
    setTexts({ ...textsOf(chosen), timeZone })
  }
  const enterText = (entered: { from?: string; to?: string }) => {
    const { from, to } = { ...texts, ...entered }
    setTexts({ from, to, timeZone })
    setTimes({ fromMs: msOf(from), toMs: msOf(to) })
  }
  return { times, texts, chooseTimes, enterText, timeZone }
}

/** An input without a time stays empty. */
function textsOf({ fromMs, toMs }: DayRange) {
  const textOf = (ms: number) => (Number.isNaN(ms) ? '' : toInputTime(ms))
  return { from: textOf(fromMs), to: textOf(toMs) }
}

function msOf(text: string): number {
  return Date.parse(fromInputTime(text) ?? '')
}
