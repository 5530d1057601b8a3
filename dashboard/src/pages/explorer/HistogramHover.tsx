import { formatCount } from '../../parts/format.ts'
import type { Histogram } from './event-queries.ts'
import classes from './Histogram.module.css'
import { colorOf, type Scheme } from './histogram-chart.ts'
import { barWords, countsAt } from './histogram-words.ts'

export type Hovered = { index: number; leftPx: number }

/** What one bar stands for. A screen reader has the table instead. */
export function HistogramHover({
  hovered: { index, leftPx },
  histogram,
  scheme,
  isOnLeft,
}: {
  hovered: Hovered
  histogram: Histogram
  scheme: Scheme
  /** Of the bar, where there is more room. */
  isOnLeft: boolean
}) {
  const counts = countsAt(histogram, index)
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  return (
    <div
      className={classes.hover}
      data-side={isOnLeft ? 'left' : 'right'}
      style={{ left: leftPx }}
      aria-hidden="true"
    >
      <div className="numeric">{barWords(histogram, index)}</div>
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
