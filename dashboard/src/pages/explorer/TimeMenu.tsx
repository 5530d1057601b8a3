import { Button, Menu } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { lazy, Suspense, useState } from 'react'
import { Icon } from '../../parts/Icon.tsx'
import { MenuChoice } from '../../parts/MenuChoice.tsx'
import { useFocusBack } from '../../parts/use-focus-back.ts'
import {
  RANGE_NAMES,
  rangePatch,
  RANGES,
  type TimeWindow,
  TRACE_SPAN_MS_MAX,
  windowText,
} from './time-window.ts'
import type { Change } from './use-explorer.ts'

// Loaded when the menu opens.
const ExactTimes = lazy(async () => ({ default: (await import('./ExactTimes.tsx')).ExactTimes }))

const TRACE_BOUND = 'A trace ID search covers at most 24 hours.'

type TimeProps = { timeWindow: TimeWindow; isTraced: boolean; change: Change }

/** Chooses the period. Shows the name of a range, or exact times after zooming. */
export function TimeMenu({ timeWindow, isTraced, change }: TimeProps) {
  const [isExact, exact] = useDisclosure(false)
  const [wasOpened, setOpened] = useState(false)
  useFocusBack(isExact)
  return (
    <>
      <Menu position="bottom-end" width={200} onOpen={() => setOpened(true)}>
        <Menu.Target>
          <Button
            size="xs"
            variant="default"
            leftSection={<Icon name="clock" size={13} />}
            rightSection={<Icon name="down" size={12} />}
            aria-label={`Time: ${windowText(timeWindow)}`}
          >
            <span className="numeric">{windowText(timeWindow)}</span>
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {RANGE_NAMES.map((range) => (
            <MenuChoice
              key={range}
              reason={isTraced && RANGES[range].spanMs > TRACE_SPAN_MS_MAX ? TRACE_BOUND : null}
              onClick={() => change(rangePatch(range))}
              rightSection={timeWindow.range === range ? <Icon name="check" size={12} /> : null}
            >
              {RANGES[range].words}
            </MenuChoice>
          ))}
          {isTraced && <Menu.Label aria-hidden>{TRACE_BOUND}</Menu.Label>}
          <Menu.Divider />
          <Menu.Item onClick={exact.open}>Custom range…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {wasOpened && (
        <Suspense>
          <ExactTimes
            isOpen={isExact}
            onClose={exact.close}
            timeWindow={timeWindow}
            change={change}
          />
        </Suspense>
      )}
    </>
  )
}
