import { Tooltip } from '@mantine/core'
import { formatHint, formatLocal, type TimeStyle } from './time.ts'
import { useTimeZone } from './time-zone.ts'

/** A time. Hovering shows UTC, or the local time if UTC is shown, and how long ago it was. */
export function TimeText({ at, style = 'full' }: { at: string | number; style?: TimeStyle }) {
  useTimeZone()
  const ms = typeof at === 'number' ? at : Date.parse(at)
  return (
    <Tooltip label={formatHint(ms)} withinPortal>
      <time dateTime={new Date(ms).toISOString()} className="numeric">
        {formatLocal(ms, style)}
      </time>
    </Tooltip>
  )
}
