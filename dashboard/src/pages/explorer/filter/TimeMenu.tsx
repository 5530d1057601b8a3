import { Button, Menu } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { Fragment, lazy, Suspense, useState } from 'react'
import { whenConnected } from '../../../api/when-connected.ts'
import { Icon } from '../../../parts/Icon.tsx'
import { useTimeZone } from '../../../parts/time/time-zone.ts'
import { useRestoreFocus } from '../../../parts/dialog/use-restore-focus.ts'
import {
  exactPatch,
  PERIOD_NAMES,
  RANGE_NAMES,
  rangeLabel,
  rangePatch,
  type TimeWindow,
  windowText,
} from '../../../query/time-window.ts'
import type { Change } from '../use-explorer.ts'

// Loaded when the menu opens.
const CustomRange = lazy(
  whenConnected(async () => ({ default: (await import('./CustomRange.tsx')).CustomRange })),
)

type TimeProps = { timeWindow: TimeWindow; change: Change }

/** Chooses the period. Shows the name of a range, or exact times after zooming. */
export function TimeMenu({ timeWindow, change }: TimeProps) {
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
                <Menu.Item
                  key={range}
                  onClick={() => change(rangePatch(range))}
                  rightSection={timeWindow.range === range ? <Icon name="check" size={12} /> : null}
                >
                  {rangeLabel(range)}
                </Menu.Item>
              ))}
              <Menu.Divider />
            </Fragment>
          ))}
          <Menu.Item onClick={exact.open}>Custom range…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {wasOpened && (
        <Suspense>
          <CustomRange
            isOpen={isExact}
            onClose={exact.close}
            title="Custom range"
            times={timeWindow}
            onApply={({ fromMs, toMs }) => change(exactPatch(fromMs, toMs))}
          />
        </Suspense>
      )}
    </>
  )
}
