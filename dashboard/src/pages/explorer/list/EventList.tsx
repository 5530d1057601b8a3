import { useElementSize } from '@mantine/hooks'
import { type PointerEvent, useEffect, useMemo, useState } from 'react'
import { useKnownBroken } from '../../../api/broken-chains.ts'
import { type ColumnName, COLUMNS, fitColumns, type Names } from './columns.ts'
import { ColumnMenu } from './ColumnMenu.tsx'
import classes from './EventList.module.css'
import { EventRow } from './EventRow.tsx'
import type { ExplorerEvent } from '../explorer-event.ts'
import { Icon } from '../../../parts/Icon.tsx'
import { type Sort, SORT_LABELS, sortPatch } from '../../../query/received.ts'
import type { SearchPatch } from '../../../query/explorer-search.ts'
import { rememberColors } from '../../../parts/chart/name-color.ts'
import { shortZoneName, useTimeZone } from '../../../parts/time/time-zone.ts'
import type { Change } from '../use-explorer.ts'
import { useRowPx } from './use-density.ts'
import { useRowChecks } from './use-row-checks.ts'
import { useRowWindow } from './use-row-window.ts'

/** Once the list has been scrolled, the next page loads when fewer than this many rows are left. */
const PREFETCH_ROWS = 60

type ListProps = {
  events: readonly ExplorerEvent[]
  columns: readonly ColumnName[]
  /** The member chose the columns, so all of them stay. */
  hasOwnColumns: boolean
  names: Names
  sort: Sort
  isSmall: boolean
  isLive: boolean
  isBusy: boolean
  activeId: string | null
  openId: string | null
  /** Called when the pointer or the focus enters a row. */
  onPrefetch: () => unknown
  mayExclude: boolean
  onOpen: (id: string) => void
  onFilter: (patch: SearchPatch) => void
  change: Change
  /** Null if there are no more events or the next page is already loading. */
  onMore: (() => void) | null
  bodyRef: React.RefObject<HTMLDivElement | null>
}

/** The list of events. It renders only the rows near the screen. */
export function EventList(props: ListProps) {
  const { events, isSmall, isBusy, activeId, openId, onMore, bodyRef } = props
  const { ref, columns } = useFittingColumns(props)
  const rowPx = useRowPx(isSmall)
  const { first, last, isScrolled } = useRowWindow(bodyRef, { count: events.length, rowPx })
  const isNearEnd = last + (isScrolled ? PREFETCH_ROWS : 0) >= events.length
  useEffect(() => {
    if (isNearEnd) onMore?.()
  }, [isNearEnd, onMore])
  const tracks = columns.map((name) => COLUMNS[name].track).join(' ')
  const [hoveredId, setHoveredId] = useState<string | null>(null)
  const rows = useColoredRows(events, first, last)
  useRowChecks(rows)
  const { eventIds: brokenIds } = useKnownBroken()
  // The Tab key reaches one row: the active one, or the first.
  const tabId = rows.find(({ id }) => id === activeId)?.id ?? events[first]?.id
  return (
    <div
      ref={ref}
      role="grid"
      aria-label="Events"
      aria-rowcount={onMore ? -1 : events.length + 1}
      aria-busy={isBusy}
      className={classes.list}
      style={{ '--tracks': tracks, '--row-px': `${rowPx}px` } as React.CSSProperties}
    >
      <ListHead {...props} columns={columns} chosen={props.columns} />
      <div
        role="rowgroup"
        ref={bodyRef}
        className={classes.body}
        onFocus={props.onPrefetch}
        onPointerOver={(event) => {
          setHoveredId(rowIdOf(event))
          props.onPrefetch()
        }}
        onPointerLeave={() => setHoveredId(null)}
        style={{ height: events.length * rowPx }}
      >
        <div
          role="presentation"
          className={classes.rows}
          style={{ transform: `translateY(${first * rowPx}px)` }}
        >
          {rows.map((event, offset) => (
            <EventRow
              key={event.id}
              event={event}
              index={first + offset}
              columns={columns}
              names={props.names}
              sort={props.sort}
              isSmall={isSmall}
              isLive={props.isLive}
              isActive={event.id === tabId}
              isHovered={event.id === hoveredId}
              isOpen={event.id === openId}
              isBroken={brokenIds.has(event.id)}
              mayExclude={props.mayExclude}
              onOpen={props.onOpen}
              onFilter={props.onFilter}
            />
          ))}
        </div>
      </div>
    </div>
  )
}

function useFittingColumns({ columns, hasOwnColumns }: ListProps) {
  const { ref, width } = useElementSize<HTMLDivElement>()
  const fitting = useMemo(
    () => (hasOwnColumns ? columns : fitColumns(columns, width)),
    [hasOwnColumns, columns, width],
  )
  return { ref, columns: fitting }
}

/** Gives their categories the colors of the charts before the rows are drawn. */
function useColoredRows(
  events: readonly ExplorerEvent[],
  first: number,
  last: number,
): readonly ExplorerEvent[] {
  return useMemo(() => {
    const rows = events.slice(first, last)
    rememberColors([...new Set(rows.map(({ category }) => category))])
    return rows
  }, [events, first, last])
}

type HeadProps = Pick<ListProps, 'columns' | 'sort' | 'isSmall' | 'isBusy' | 'change'> & {
  /** Including those that don't fit. */
  chosen: readonly ColumnName[]
}

/** On small screens, the rows have no columns, so the head names only the order. */
function ListHead({ columns, chosen, sort, isSmall, isBusy, change }: HeadProps) {
  const zone = useTimeZone()
  const sorted: ColumnName = sort === 'receivedAt' ? 'received' : 'time'
  return (
    <div role="rowgroup" className={classes.head} data-busy={isBusy || undefined}>
      <div role="row" aria-rowindex={1} className={classes.headRow}>
        {(isSmall ? [sorted] : columns).map((name) =>
          name === 'time' || name === 'received' ? (
            <SortedHead key={name} name={name} sort={sort} zone={zone} change={change} />
          ) : (
            <span role="columnheader" key={name} data-column={name} className="truncate">
              {COLUMNS[name].label}
            </span>
          ),
        )}
        <span role="columnheader" className={classes.columnMenu}>
          <ColumnMenu columns={isSmall ? null : chosen} sort={sort} change={change} />
        </span>
      </div>
    </div>
  )
}

/** In both orders, the latest events come first. */
function SortedHead({
  name,
  sort,
  zone,
  change,
}: Pick<HeadProps, 'sort' | 'change'> & { name: 'time' | 'received'; zone: string }) {
  const own = name === 'received' ? 'receivedAt' : 'timestamp'
  const isSorted = sort === own
  return (
    <span
      role="columnheader"
      data-column={name}
      aria-sort={isSorted ? 'descending' : 'none'}
      className="truncate"
    >
      <button
        type="button"
        className={classes.sort}
        title={isSorted ? undefined : SORT_LABELS[own]}
        onClick={() => change(sortPatch(own), { replace: true })}
      >
        {COLUMNS[name].label}
        <span title={zone}> ({shortZoneName(zone)})</span>
        {isSorted && <Icon name="down" size={11} />}
      </button>
    </span>
  )
}

function rowIdOf({ target }: PointerEvent): string | null {
  const row = target instanceof Element ? target.closest<HTMLElement>('[data-id]') : null
  return row?.dataset['id'] ?? null
}
