import { formatCount } from '../../parts/format.ts'
import type { Histogram } from './event-queries.ts'
import classes from './Histogram.module.css'
import { colorOf, type Scheme } from './histogram-chart.ts'
import { countsAt, spanText } from './histogram-text.ts'

/** What a bar stands for. A screen reader has the table instead. */
export function HistogramHover({
  leftPx,
  ends: [first, last],
  histogram,
  scheme,
  isOnLeft,
}: {
  leftPx: number
  /** The first bar and the last: the same one below the pointer, several chosen by the keyboard. */
  ends: readonly [number, number]
  histogram: Histogram
  scheme: Scheme
  /** Of the bar, where there is more room. */
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
        .map(({ position, value, name, count }) => (
          <div className={classes.hoverLine} key={name}>
            <span
              className={classes.swatch}
              style={{ background: colorOf(scheme, position, value) }}
            />
            <span className="truncate">{name}</span>
            <span className="numeric">{formatCount(count)}</span>
          </div>
        ))}
    </div>
  )
}
