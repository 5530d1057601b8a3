import { formatCount } from '../../parts/format.ts'
import { TimeText } from '../../parts/TimeText.tsx'
import { pluralize } from '../company/pluralize.ts'
import classes from './EventTypeRow.module.css'
import { TypeFlags } from './TypeFlags.tsx'
import type { EventType } from './event-types.ts'

export function EventTypeRow({ type, onOpen }: { type: EventType; onOpen: () => void }) {
  const { category, action, count, metadataKeys, truncated, lastSeenAt } = type
  return (
    <div role="listitem">
      <button type="button" className={classes.row} onClick={onOpen}>
        <span className={`truncate ${classes.action}`}>{action}</span>
        <span className={`truncate soft ${classes.category}`}>{category}</span>
        <span className={classes.flags}>
          <TypeFlags type={type} />
        </span>
        <span className={`soft ${classes.keys}`}>
          {metadataKeys.length === 0
            ? 'No metadata'
            : `${pluralize(metadataKeys.length, 'key')}${truncated ? ' or more' : ''}`}
        </span>
        <span className={classes.count}>
          {formatCount(count)}
          <span className={classes.unit}>{count === 1 ? ' event' : ' events'}</span>
        </span>
        <span className={classes.last}>
          <TimeText at={lastSeenAt} style="clock" />
        </span>
      </button>
    </div>
  )
}

/** The column names, hidden from screen readers, which read each row on its own. */
export function EventTypeHeader() {
  return (
    <div className={classes.head} aria-hidden="true">
      <span>Action</span>
      <span>Category</span>
      <span>Flags</span>
      <span>Metadata</span>
      <span className={classes.count}>Events</span>
      <span className={classes.last}>Last seen</span>
    </div>
  )
}
