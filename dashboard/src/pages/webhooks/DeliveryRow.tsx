import { formatDuration } from '../../parts/format.ts'
import { shorten } from '../../parts/shorten.ts'
import { StatusText } from '../../parts/StatusText.tsx'
import { TimeText } from '../../parts/TimeText.tsx'
import { answerText, DELIVERY_WORDS } from './delivery-text.ts'
import classes from './DeliveryRow.module.css'
import type { Delivery } from './webhook-types.ts'

export function DeliveryRow({ delivery, onOpen }: { delivery: Delivery; onOpen: () => void }) {
  const { word, tone } = DELIVERY_WORDS[delivery.status]
  const answer = answerText(delivery)
  return (
    <div role="listitem">
      <button type="button" className={classes.row} onClick={onOpen}>
        <TimeText at={delivery.createdAt} style="clock" />
        <span className={classes.state}>
          <StatusText tone={tone}>{word}</StatusText>
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
export function DeliveryHead() {
  return (
    <div className={classes.head} aria-hidden="true">
      <span>Created</span>
      <span>Status</span>
      <span>Event</span>
      <span>Last response</span>
    </div>
  )
}
