import { Button, Menu } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Fragment, lazy, Suspense, useState } from 'react'
import { whenConnected } from '../../../api/when-connected.ts'
import { Icon } from '../../../parts/Icon.tsx'
import { MenuAction } from '../../../parts/MenuAction.tsx'
import { useTimeZone } from '../../../parts/time-zone.ts'
import { useRestoreFocus } from '../../../parts/use-restore-focus.ts'
import {
  type Period,
  PERIOD_NAMES,
  type Range,
  RANGE_NAMES,
  rangeLabel,
  rangePatch,
  type TimeWindow,
  TRACE_SPAN_MS_MAX,
  windowOf,
  windowText,
} from '../../../query/time-window.ts'
import type { Change } from '../use-explorer.ts'

// Loaded when the menu opens.
const CustomRange = lazy(
  whenConnected(async () => ({ default: (await import('./CustomRange.tsx')).CustomRange })),
)

const TRACE_LIMIT_TEXT = 'A trace ID search covers at most 24 hours.'

type TimeProps = { timeWindow: TimeWindow; isTraced: boolean; change: Change }

function isTooLong(range: Range | Period): boolean {
  const { fromMs, toMs } = windowOf({ range }, Date.now())
  return toMs - fromMs > TRACE_SPAN_MS_MAX
}

/** Chooses the period. Shows the name of a range, or exact times after zooming. */
export function TimeMenu({ timeWindow, isTraced, change }: TimeProps) {
  useTimeZone()
  const [isExact, exact] = useDisclosure(false)
  const [wasOpened, setOpened] = useState(false)
  useRestoreFocus(isExact)
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
          {[RANGE_NAMES, PERIOD_NAMES].map((names) => (
            <Fragment key={names[0]}>
              {names.map((range) => (
                <MenuAction
                  key={range}
                  reason={isTraced && isTooLong(range) ? TRACE_LIMIT_TEXT : null}
                  onClick={() => change(rangePatch(range))}
                  rightSection={timeWindow.range === range ? <Icon name="check" size={12} /> : null}
                >
                  {rangeLabel(range)}
                </MenuAction>
              ))}
              <Menu.Divider />
            </Fragment>
          ))}
          {isTraced && <Menu.Label aria-hidden>{TRACE_LIMIT_TEXT}</Menu.Label>}
          <Menu.Item onClick={exact.open}>Custom range…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {wasOpened && (
        <Suspense>
          <CustomRange
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
