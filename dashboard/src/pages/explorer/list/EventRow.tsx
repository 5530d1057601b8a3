import { VisuallyHidden } from '@mantine/core'
import { memo } from 'react'
import { Icon } from '../../../parts/Icon.tsx'
import { DisabledReason } from '../../../parts/DisabledReason.tsx'
import { formatHint, formatLocal } from '../../../parts/time/time.ts'
import { useTimeZone } from '../../../parts/time/time-zone.ts'
import { isDangerous } from '../../../parts/action-tone.ts'
import { CategoryDot } from './CategoryDot.tsx'
import { type ColumnName, COLUMNS, type Names } from './columns.ts'
import classes from './EventList.module.css'
import { exclusionIn, exclusionText, EXCLUSIONS_FULL_TEXT } from '../../../query/exclusions.ts'
import { actorText, delayText, type ExplorerEvent, resourceText } from '../explorer-event.ts'
import type { Sort } from '../../../query/received.ts'
import { addPatch, type SearchPatch } from '../../../query/explorer-search.ts'
import { FIELD_LABELS } from '../../../query/filters.ts'
import { showInvisible } from '../../../parts/text/show-invisible.ts'

/** Events received less than this ago slide in. */
const FRESH_MS = 2_000

type RowProps = {
  event: ExplorerEvent
  /** Starts at 0. */
  index: number
  columns: readonly ColumnName[]
  names: Names
  sort: Sort
  isSmall: boolean
  isLive: boolean
  isActive: boolean
  /** The pointer is on the row. Only the hovered and the active row have buttons. */
  isHovered: boolean
  isOpen: boolean
  /** The event failed verification. */
  isBroken: boolean
  mayExclude: boolean
  onOpen: (id: string) => void
  onFilter: (patch: SearchPatch) => void
}

/** Memoized, because hundreds of rows mount and unmount while the member scrolls. */
export const EventRow = memo(function EventRow(props: RowProps) {
  const { event, index, sort, isSmall, isLive, isActive, isOpen, isBroken, onOpen } = props
  useTimeZone()
  const isFresh = isLive && Date.now() - Date.parse(event.receivedAt) < FRESH_MS
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      aria-selected={isOpen}
      tabIndex={isActive ? 0 : -1}
      className={isSmall ? classes.smallRow : classes.row}
      data-id={event.id}
      data-fresh={isFresh || undefined}
      data-broken={isBroken || undefined}
      onClick={() => onOpen(event.id)}
    >
      {isSmall ? (
        <CompactRow event={event} sort={sort} isBroken={isBroken} />
      ) : (
        <Cells {...props} />
      )}
    </div>
  )
})

function Cells(props: RowProps) {
  const { event, columns, names, isActive, isHovered, isBroken } = props
  const isNear = isActive || isHovered
  const lateColumn = columns.includes('received') ? 'received' : 'time'
  return columns.map((name, nth) => {
    const { label, isNumeric, text, filter } = COLUMNS[name]
    const shown = showInvisible(text(event, names))
    const patch = isNear ? filter(event) : null
    return (
      <div role="gridcell" className={classes.cell} data-column={name} key={name}>
        {isBroken && nth === 0 && <BrokenMark />}
        {name === 'action' && <CategoryDot category={event.category} />}
        <span
          className={isNumeric ? 'truncate numeric' : 'truncate'}
          data-danger={(name === 'action' && isDangerous(event.action)) || undefined}
          title={isNear ? hintOf(event, name, shown) : undefined}
        >
          {shown || <span className="soft">–</span>}
        </span>
        {name === lateColumn && <LateMark event={event} />}
        {patch && <CellActions {...props} patch={patch} shown={shown} label={label} />}
      </div>
    )
  })
}

type ActionProps = RowProps & { patch: SearchPatch; shown: string }

function CellActions({ label, ...props }: ActionProps & { label: string }) {
  const { patch, shown, isActive, onFilter } = props
  const hint =
    patch.sort === 'receivedAt' ? 'Show what arrived then (±5 minutes)' : 'Filter by this'
  return (
    <span className={classes.actions}>
      <span>
        <button
          type="button"
          className={classes.filter}
          tabIndex={isActive ? 0 : -1}
          aria-label={`Filter by ${label.toLowerCase()}: ${shown}`}
          title={hint}
          onClick={(click) => {
            click.stopPropagation()
            onFilter(addPatch(patch))
          }}
        >
          <Icon name="filter" size={12} />
        </button>
        <ExcludeButton {...props} />
      </span>
    </span>
  )
}

function BrokenMark() {
  return (
    <span className={classes.broken} title="Failed verification">
      <Icon name="alert" size={13} />
      <VisuallyHidden>Failed verification</VisuallyHidden>
    </span>
  )
}

/** The event's own time is more than five minutes from its receipt. */
function LateMark({ event }: { event: ExplorerEvent }) {
  const text = delayText(event)
  if (text === null) return null
  return (
    <span className={classes.late} title={upperFirst(text)}>
      <Icon name="clock" size={12} />
      <VisuallyHidden>, {text}</VisuallyHidden>
    </span>
  )
}

function upperFirst(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`
}

function ExcludeButton({ patch, shown, isActive, mayExclude, onFilter }: ActionProps) {
  const exclusion = exclusionIn(patch)
  if (exclusion === null) return null
  const { field, value } = exclusion
  return (
    <DisabledReason reason={mayExclude ? null : EXCLUSIONS_FULL_TEXT}>
      <button
        type="button"
        className={`${classes.filter} ${classes.exclude}`}
        tabIndex={isActive ? 0 : -1}
        aria-label={`Exclude ${FIELD_LABELS[field]}: ${field === 'projectId' ? shown : value}`}
        title={mayExclude ? 'Exclude this' : undefined}
        onClick={(click) => {
          click.stopPropagation()
          onFilter({ exclude: exclusionText(exclusion) })
        }}
      >
        <Icon name="exclude" size={12} />
      </button>
    </DisabledReason>
  )
}

function hintOf(event: ExplorerEvent, name: ColumnName, shown: string): string {
  if (name === 'trace') return event.traceId ?? ''
  if (name === 'received') return formatHint(Date.parse(event.receivedAt))
  return name === 'time' ? formatHint(Date.parse(event.timestamp)) : shown
}

function CompactRow({ event, sort, isBroken }: Pick<RowProps, 'event' | 'sort' | 'isBroken'>) {
  const summary = [actorText(event), resourceText(event)].filter((text) => text !== '')
  return (
    <>
      <div role="gridcell" className={classes.smallLine}>
        <strong className="truncate" data-danger={isDangerous(event.action) || undefined}>
          {isBroken && <BrokenMark />} <CategoryDot category={event.category} />{' '}
          {showInvisible(event.action)}
        </strong>
        <span className="soft numeric">
          <LateMark event={event} /> {sort === 'receivedAt' && 'received '}
          {formatLocal(Date.parse(event[sort]), 'clock')}
        </span>
      </div>
      <div role="gridcell" className={`${classes.smallLine} soft`}>
        <span className="truncate">{showInvisible(summary.join(' · ') || event.category)}</span>
      </div>
    </>
  )
}
