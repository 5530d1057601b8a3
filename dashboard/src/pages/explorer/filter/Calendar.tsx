import { ActionIcon, Group, Text } from '@mantine/core'
import { type KeyboardEvent, useRef, useState } from 'react'
import { flushSync } from 'react-dom'
import {
  addDays,
  type CalendarDay,
  dayAt,
  dayStartMs,
  weekStart,
} from '../../../parts/time/calendar.ts'
import { Icon } from '../../../parts/Icon.tsx'
import { zonedFormat } from '../../../parts/time/time.ts'
import classes from './Calendar.module.css'

/** From the start of the first day to the end of the last one, which is exclusive. */
export type DayRange = { fromMs: number; toMs: number }

const WEEKS = 6
const monthText = zonedFormat({ month: 'long', year: 'numeric' })
const weekdayText = zonedFormat({ weekday: 'short' })
const dayText = zonedFormat({ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' })
const STEPS: Partial<Record<string, number>> = {
  ArrowLeft: -1,
  ArrowRight: 1,
  ArrowUp: -7,
  ArrowDown: 7,
}

/** Chooses whole days: the first click sets the first day, and the second click the last one. */
export function Calendar({
  times: { fromMs, toMs },
  onChange,
}: {
  times: DayRange
  onChange: (times: DayRange) => void
}) {
  const lastMs = Number.isNaN(toMs) ? Date.now() : toMs - 1
  const [cursor, setCursor] = useState(() => dayAt(lastMs))
  /** The first day of a range whose last day isn't chosen yet. */
  const [anchorMs, setAnchorMs] = useState<number | null>(null)
  const grid = useRef<HTMLTableElement>(null)
  const choose = (day: CalendarDay) => {
    const atMs = dayStartMs(day)
    const [firstMs, endMs] = [Math.min(anchorMs ?? atMs, atMs), Math.max(anchorMs ?? atMs, atMs)]
    setAnchorMs(anchorMs === null ? atMs : null)
    setCursor(day)
    onChange({ fromMs: firstMs, toMs: dayStartMs(addDays(dayAt(endMs), 1)) })
  }
  const moveByKey = (event: KeyboardEvent) => {
    const days = STEPS[event.key]
    if (days === undefined) return
    event.preventDefault()
    // The focus moves before the next key arrives, which would otherwise reach the old day.
    flushSync(() => setCursor(addDays(cursor, days)))
    grid.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus()
  }
  const isChosen = (day: CalendarDay) =>
    dayStartMs(day) < toMs && dayStartMs(addDays(day, 1)) > fromMs
  return (
    <div>
      <MonthHeader month={cursor} onChange={setCursor} />
      <table ref={grid} className={classes.grid} onKeyDown={moveByKey}>
        <thead>
          <tr>
            {weekOf(weekStart(cursor)).map((day) => (
              <th key={day.day} scope="col">
                {weekdayText(dayStartMs(day))}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {weeksOf(cursor).map((week) => (
            <tr key={dayStartMs(week[0] ?? cursor)}>
              {week.map((day) => (
                <td key={day.day}>
                  <button
                    type="button"
                    className={classes.day}
                    tabIndex={dayStartMs(day) === dayStartMs(cursor) ? 0 : -1}
                    aria-label={dayText(dayStartMs(day))}
                    aria-pressed={isChosen(day)}
                    data-outside={day.month !== cursor.month || undefined}
                    onClick={() => choose(day)}
                  >
                    {day.day}
                  </button>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <Text size="xs" className="soft">
        {anchorMs === null ? 'Choose the first day.' : 'Choose the last day.'}
      </Text>
    </div>
  )
}

function MonthHeader({
  month: { year, month },
  onChange,
}: {
  month: CalendarDay
  onChange: (day: CalendarDay) => void
}) {
  const move = (by: number) => onChange(dayAt(dayStartMs({ year, month: month + by, day: 1 })))
  return (
    <Group justify="space-between" mb={4}>
      <ActionIcon
        variant="subtle"
        color="gray"
        aria-label="Previous month"
        className={classes.back}
        onClick={() => move(-1)}
      >
        <Icon name="chevron" size={14} />
      </ActionIcon>
      <Text size="sm" fw={500} aria-live="polite">
        {monthText(dayStartMs({ year, month, day: 1 }))}
      </Text>
      <ActionIcon variant="subtle" color="gray" aria-label="Next month" onClick={() => move(1)}>
        <Icon name="chevron" size={14} />
      </ActionIcon>
    </Group>
  )
}

/** Always six weeks, so that the dialog keeps its size. */
function weeksOf({ year, month }: CalendarDay): CalendarDay[][] {
  const first = weekStart({ year, month, day: 1 })
  return Array.from({ length: WEEKS }, (_, nth) => weekOf(addDays(first, 7 * nth)))
}

function weekOf(first: CalendarDay): CalendarDay[] {
  return Array.from({ length: 7 }, (_, nth) => addDays(first, nth))
}
