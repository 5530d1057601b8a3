import { Link } from '@tanstack/react-router'
import { formatCount } from '../../parts/text/format.ts'
import rows from '../../parts/table/ListRow.module.css'
import { TimeText } from '../../parts/time/TimeText.tsx'
import { pluralize } from '../../parts/text/pluralize.ts'
import classes from './EventTypeRow.module.css'
import { TypeFlags } from './TypeFlags.tsx'
import type { EventType } from './event-types.ts'
import type { EventTypesSearch } from './event-types-search.ts'
import { showInvisible } from '../../parts/text/show-invisible.ts'

/** A link to the page of the type. */
export function EventTypeRow({ type, search }: { type: EventType; search: EventTypesSearch }) {
  const { category, action, count, metadataKeys, truncated, lastSeenAt } = type
  return (
    <div role="listitem">
      <Link to="/app/event-types" search={search} className={`${rows.row} ${classes.tracks}`}>
        <span className={`truncate ${classes.action}`}>{showInvisible(action)}</span>
        <span className={`truncate soft ${classes.category}`}>{showInvisible(category)}</span>
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
      </Link>
    </div>
  )
}

/** The column names, hidden from screen readers, which read each row on its own. */
export function EventTypeHeader() {
  return (
    <div className={`${rows.head} ${classes.tracks}`} aria-hidden="true">
      <span>Action</span>
      <span>Category</span>
      <span>Flags</span>
      <span>Metadata</span>
      <span className={classes.count}>Events</span>
      <span className={classes.last}>Last seen</span>
    </div>
  )
}
