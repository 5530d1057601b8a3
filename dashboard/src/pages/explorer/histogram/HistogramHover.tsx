import { formatCount } from '../../../parts/text/format.ts'
import { colorOf, type Scheme } from '../../../parts/chart/name-color.ts'
import type { Histogram } from '../event-queries.ts'
import classes from './Histogram.module.css'
import { countsAt, spanText } from './histogram-text.ts'

/** Describes a bar. Hidden from screen readers, which have the table. */
export function HistogramHover({
  leftPx,
  ends: [first, last],
  histogram,
  scheme,
  isOnLeft,
}: {
  leftPx: number
  /** The first and the last bar: different if several are selected. */
  ends: readonly [number, number]
  histogram: Histogram
  scheme: Scheme
  /** Shown to the left of the bar, because there is more room. */
  isOnLeft: boolean
}) {
  const counts = countsAt(histogram, first, last)
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  return (
    <div
      className={classes.hover}
      data-side={isOnLeft ? 'left' : 'right'}
      style={{ left: leftPx }}
      aria-hidden="true"
    >
      <div className="numeric">{spanText(histogram, first, last)}</div>
      <strong className="numeric">
        {formatCount(total)} {total === 1 ? 'event' : 'events'}
      </strong>
      {counts
        .filter(({ count }) => count > 0)
        .map(({ value, name, count }) => (
          <div className={classes.hoverLine} key={name}>
            <span className={classes.swatch} style={{ background: colorOf(scheme, value) }} />
            <span className="truncate">{name}</span>
            <span className="numeric">{formatCount(count)}</span>
          </div>
        ))}
    </div>
  )
}
