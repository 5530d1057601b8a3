import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { fromInputTime, toInputTime } from '../../../parts/input-time.ts'
import { useTimeZone } from '../../../parts/time-zone.ts'
import { exactPatch, type TimeWindow } from '../../../query/time-window.ts'
import type { Change } from '../use-explorer.ts'

type CustomRangeProps = {
  isOpen: boolean
  onClose: () => void
  timeWindow: TimeWindow
  change: Change
}

/** Sets the start and the end of the period, to the second. */
export function CustomRange({ isOpen, ...props }: CustomRangeProps) {
  return (
    <Modal opened={isOpen} onClose={props.onClose} title="Custom range" centered>
      {isOpen && <CustomRangeForm {...props} />}
    </Modal>
  )
}

function CustomRangeForm({ timeWindow, change, onClose }: Omit<CustomRangeProps, 'isOpen'>) {
  const [from, setFrom] = useState(toInputTime(timeWindow.fromMs))
  const [to, setTo] = useState(toInputTime(timeWindow.toMs))
  const timeZone = useTimeZone()
  const fromMs = Date.parse(fromInputTime(from) ?? '')
  const toMs = Date.parse(fromInputTime(to) ?? '')
  const isOrdered = fromMs < toMs
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!isOrdered) return
    change(exactPatch(fromMs, toMs))
    onClose()
  }
  const common = { type: 'datetime-local', step: 1, required: true }
  return (
    <form onSubmit={submit}>
      <Stack>
        <TextInput
          {...common}
          label="From"
          data-autofocus
          value={from}
          onChange={(event) => setFrom(event.currentTarget.value)}
        />
        <TextInput
          {...common}
          label="To (exclusive)"
          value={to}
          onChange={(event) => setTo(event.currentTarget.value)}
          error={from !== '' && to !== '' && !isOrdered && 'The end must be after the start.'}
        />
        <Text size="xs" className="soft">
          Time zone: {timeZone}
        </Text>
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
