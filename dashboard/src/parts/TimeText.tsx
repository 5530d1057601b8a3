import { Tooltip } from '@mantine/core'
import { formatRelative, formatLocal, formatUtc, type TimeStyle } from './time.ts'

/** A time in the viewer's time zone. Hovering shows UTC and how long ago it was. */
export function TimeText({ at, style = 'full' }: { at: string | number; style?: TimeStyle }) {
  const ms = typeof at === 'number' ? at : Date.parse(at)
  return (
    <Tooltip label={`${formatUtc(ms)} · ${formatRelative(ms, Date.now())}`} withinPortal>
      <time dateTime={new Date(ms).toISOString()} className="numeric">
        {formatLocal(ms, style)}
      </time>
    </Tooltip>
  )
}
