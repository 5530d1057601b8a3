import { formatDuration } from '../../parts/format.ts'
import rows from '../../parts/ListRow.module.css'
import { shorten } from '../../parts/shorten.ts'
import { StatusText } from '../../parts/StatusText.tsx'
import { TimeText } from '../../parts/TimeText.tsx'
import { responseText, DELIVERY_LABELS } from './delivery-text.ts'
import classes from './DeliveryRow.module.css'
import type { Delivery } from './webhook-types.ts'

export function DeliveryRow({ delivery, onOpen }: { delivery: Delivery; onOpen: () => void }) {
  const { label, tone } = DELIVERY_LABELS[delivery.status]
  const answer = responseText(delivery)
  return (
    <div role="listitem">
      <button type="button" className={`${rows.row} ${classes.tracks}`} onClick={onOpen}>
        <TimeText at={delivery.createdAt} style="clock" />
        <span className={classes.state}>
          <StatusText tone={tone}>{label}</StatusText>
        </span>
        <span className={`mono truncate ${classes.event}`}>
          {delivery.isTest ? 'Test' : shorten(delivery.eventId)}
        </span>
        <span className={`soft ${classes.outcome}`}>
          {answer ?? '–'}
          {delivery.attempt > 1 ? ` · ${delivery.attempt} attempts` : ''}
          {delivery.durationMs !== null && ` · ${formatDuration(delivery.durationMs)}`}
        </span>
      </button>
    </div>
  )
}

/** The column names, hidden from screen readers, which read each row on its own. */
export function DeliveryHeader() {
  return (
    <div className={`${rows.head} ${classes.tracks}`} aria-hidden="true">
      <span>Created</span>
      <span>Status</span>
      <span>Event</span>
      <span>Last response</span>
    </div>
  )
}
