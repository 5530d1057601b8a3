import { AnchorLink } from '../../../parts/AnchorLink.tsx'
import { formatDuration } from '../../../parts/text/format.ts'
import { Icon } from '../../../parts/Icon.tsx'
import rows from '../../../parts/table/ListRow.module.css'
import { shorten } from '../../../parts/text/shorten.ts'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { formatHint, formatRelative } from '../../../parts/time/time.ts'
import { useZonedLabel } from '../../../parts/time/time-zone.ts'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { responseText, DELIVERY_LABELS } from './delivery-text.ts'
import classes from './DeliveryRow.module.css'
import type { Delivery } from '../webhook-types.ts'
import { showInvisible } from '../../../parts/text/show-invisible.ts'

/** After this, "now" would be wrong: the receiver is too slow, or Annals pauses after failures. */
const OVERDUE_MS = 60_000

/** Opens the delivery. The link at the end leads to its event. */
export function DeliveryRow({
  delivery,
  workspaceId,
  onOpen,
}: {
  delivery: Delivery
  workspaceId: string
  onOpen: () => void
}) {
  const { label, tone } = DELIVERY_LABELS[delivery.status]
  const name = delivery.event?.action ?? shorten(delivery.eventId)
  return (
    <div role="listitem" className={classes.item}>
      <button type="button" className={`${rows.row} ${classes.tracks}`} onClick={onOpen}>
        <TimeText at={delivery.createdAt} style="clock" />
        <span className={classes.state}>
          <StatusText tone={tone}>{label}</StatusText>
        </span>
        <EventCell delivery={delivery} />
        <Outcome delivery={delivery} />
        <NextAttempt at={delivery.nextAttemptAt} />
      </button>
      {!delivery.isTest && (
        <AnchorLink
          to="/app/explorer"
          search={{ workspaceId, event: delivery.eventId }}
          className={classes.link}
          aria-label={`Open event ${name}`}
          title="Open event"
        >
          <Icon name="chevron" size={15} />
        </AnchorLink>
      )}
    </div>
  )
}

function EventCell({ delivery: { event, eventId, isTest } }: { delivery: Delivery }) {
  if (isTest) return <span className={classes.event}>Test</span>
  if (!event) return <span className={`mono truncate ${classes.event}`}>{shorten(eventId)}</span>
  const actor = event.actorEmail ?? event.actorId
  return (
    <span
      className={`truncate ${classes.event}`}
      title={showInvisible(`${event.action} · ${actor ?? 'no actor'}`)}
    >
      {showInvisible(event.action)}
      {actor !== null && <span className="soft"> · {showInvisible(actor)}</span>}
    </span>
  )
}

/** The last response, or why there is none. */
function Outcome({ delivery }: { delivery: Delivery }) {
  const { attempt, durationMs, failureReason } = delivery
  const text = [
    responseText(delivery) ?? failureReason ?? '–',
    ...(attempt > 1 ? [`${attempt} attempts`] : []),
    ...(durationMs === null ? [] : [formatDuration(durationMs)]),
  ].join(' · ')
  return (
    <span className={`soft truncate ${classes.outcome}`} title={failureReason ?? text}>
      {text}
    </span>
  )
}

function NextAttempt({ at }: { at: string | null }) {
  if (at === null) return <span className={`soft ${classes.none}`}>–</span>
  const ms = Date.parse(at)
  const nowMs = Date.now()
  return (
    <span className={`soft ${classes.next}`} title={formatHint(ms)}>
      <span className={classes.nextLabel}>Next attempt </span>
      {ms > nowMs ? formatRelative(ms, nowMs) : nowMs - ms > OVERDUE_MS ? 'overdue' : 'now'}
    </span>
  )
}

/** The column names, hidden from screen readers, which read each row on its own. */
export function DeliveryHeader() {
  const created = useZonedLabel('Created')
  return (
    <div className={classes.item} aria-hidden="true">
      <div className={`${rows.head} ${classes.tracks}`}>
        <span>{created}</span>
        <span>Status</span>
        <span>Event</span>
        <span>Last response</span>
        <span>Next attempt</span>
      </div>
    </div>
  )
}
