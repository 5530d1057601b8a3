import { NativeSelect } from '@mantine/core'
import { LOCAL_TIME_ZONE, showUtc, useTimeZone } from './time-zone.ts'

/** Shows the time zone of all times, and switches between the browser's and UTC. */
export function TimeZoneSelect({ className }: { className: string | undefined }) {
  const zone = useTimeZone()
  if (LOCAL_TIME_ZONE === 'UTC') return <span className="soft">Times in UTC</span>
  return (
    <NativeSelect
      size="xs"
      variant="unstyled"
      aria-label="Time zone"
      classNames={{ input: className }}
      data={[
        { value: LOCAL_TIME_ZONE, label: `Local time (${LOCAL_TIME_ZONE})` },
        { value: 'UTC', label: 'UTC' },
      ]}
      value={zone}
      onChange={(event) => showUtc(event.currentTarget.value === 'UTC')}
    />
  )
}
