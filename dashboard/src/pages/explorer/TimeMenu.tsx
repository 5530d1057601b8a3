import { Button, Group, Menu, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { type FormEvent, useState } from 'react'
import { Icon } from '../../parts/Icon.tsx'
import {
  exactPatch,
  RANGE_NAMES,
  rangePatch,
  RANGES,
  type TimeWindow,
  TRACE_SPAN_MS_MAX,
  windowWords,
} from './time-window.ts'
import type { Change } from './use-explorer.ts'

type TimeProps = { timeWindow: TimeWindow; isTraced: boolean; change: Change }

/** Which time, in words; exact once somebody has zoomed. */
export function TimeMenu({ timeWindow, isTraced, change }: TimeProps) {
  const [isExact, exact] = useDisclosure(false)
  return (
    <>
      <Menu position="bottom-end" width={200}>
        <Menu.Target>
          <Button
            size="xs"
            variant="default"
            leftSection={<Icon name="clock" size={13} />}
            rightSection={<Icon name="down" size={12} />}
            aria-label={`Time: ${windowWords(timeWindow)}`}
          >
            <span className="numeric">{windowWords(timeWindow)}</span>
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {RANGE_NAMES.map((range) => (
            <Menu.Item
              key={range}
              onClick={() => change(rangePatch(range))}
              disabled={isTraced && RANGES[range].spanMs > TRACE_SPAN_MS_MAX}
              rightSection={timeWindow.range === range ? <Icon name="check" size={12} /> : null}
            >
              {RANGES[range].words}
            </Menu.Item>
          ))}
          {isTraced && <Menu.Label>A trace is looked for within 24 hours.</Menu.Label>}
          <Menu.Divider />
          <Menu.Item onClick={exact.open}>Exact times…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Modal opened={isExact} onClose={exact.close} title="Exact times" centered>
        {isExact && <ExactForm timeWindow={timeWindow} change={change} onDone={exact.close} />}
      </Modal>
    </>
  )
}

function ExactForm({
  timeWindow,
  change,
  onDone,
}: {
  timeWindow: TimeWindow
  change: Change
  onDone: () => void
}) {
  const [from, setFrom] = useState(localText(timeWindow.fromMs))
  const [to, setTo] = useState(localText(timeWindow.toMs))
  const [fromMs, toMs] = [Date.parse(from), Date.parse(to)]
  const isOrdered = fromMs < toMs
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!isOrdered) return
    change(exactPatch(fromMs, toMs))
    onDone()
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
          label="To, not included"
          value={to}
          onChange={(event) => setTo(event.currentTarget.value)}
          error={from !== '' && to !== '' && !isOrdered && 'This is not after the beginning.'}
        />
        <Text size="xs" className="soft">
          In your own time zone, {Intl.DateTimeFormat().resolvedOptions().timeZone}.
        </Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onDone}>
            Cancel
          </Button>
          <Button type="submit" disabled={!isOrdered}>
            Show
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

/** As a field for local time wants it. */
function localText(ms: number): string {
  const offsetMs = new Date(ms).getTimezoneOffset() * 60_000
  return new Date(ms - offsetMs).toISOString().slice(0, 19)
}
