import { formatCount } from '../../parts/text/format.ts'
import { formatLocal } from '../../parts/time/time.ts'
import type { WebhookHealth } from './webhook-types.ts'

const WIDTH = 144
const HEIGHT = 28
const STEP = WIDTH / 24

/** The last 24 hours, one bar per hour. From bottom to top: succeeded, failed and open deliveries. */
export function HealthBars({ hours }: { hours: WebhookHealth['hours'] }) {
  const most = Math.max(
    1,
    ...hours.map(({ succeeded, failed, waiting }) => succeeded + failed + waiting),
  )
  const failures = hours.reduce((sum, { failed }) => sum + failed, 0)
  const taken = hours.reduce((sum, { succeeded }) => sum + succeeded, 0)
  const open = hours.reduce((sum, { waiting }) => sum + waiting, 0)
  const heightOf = (count: number) => (count === 0 ? 0 : Math.max(2, (count / most) * HEIGHT))
  return (
    <svg
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`Last 24 hours: ${countsText({ succeeded: taken, failed: failures, waiting: open })}`}
    >
      {hours.map(({ startsAt, succeeded, failed, waiting }, nth) => {
        const good = heightOf(succeeded)
        const bad = heightOf(failed)
        const other = heightOf(waiting)
        return (
          <g key={startsAt} transform={`translate(${nth * STEP} 0)`}>
            <title>{`${formatLocal(Date.parse(startsAt), 'clock')}: ${countsText({ succeeded, failed, waiting })}`}</title>
            <rect width={STEP} height={HEIGHT} fill="transparent" />
            <rect y={HEIGHT - 1} width={STEP - 2} height={1} fill="var(--hairline)" />
            <rect y={HEIGHT - good} width={STEP - 2} height={good} fill="var(--good)" />
            <rect y={HEIGHT - good - bad} width={STEP - 2} height={bad} fill="var(--bad)" />
            <rect
              y={HEIGHT - good - bad - other}
              width={STEP - 2}
              height={other}
              fill="var(--text-soft)"
            />
          </g>
        )
      })}
    </svg>
  )
}

type Counts = Pick<WebhookHealth['hours'][number], 'succeeded' | 'failed' | 'waiting'>

function countsText({ succeeded, failed, waiting }: Counts): string {
  return `${formatCount(succeeded)} succeeded, ${formatCount(failed)} failed, ${formatCount(waiting)} open`
}
