import { memo, useMemo } from 'react'
import { colorOf, type Scheme } from '../../../parts/chart/name-color.ts'
import type { Histogram } from '../event-queries.ts'
import classes from './Histogram.module.css'
import { drawHistogram, EDGE_PX, HEIGHT_PX, type Range } from './histogram-chart.ts'

type BarsProps = { histogram: Histogram; range: Range; widthPx: number; scheme: Scheme }

/** Memoized, so that moving the pointer over the bars doesn't redraw them. */
export const HistogramBars = memo(function HistogramBars(props: BarsProps) {
  const { histogram, range, widthPx, scheme } = props
  const { outlines, counts, times } = useMemo(
    () => drawHistogram(histogram, range, widthPx),
    [histogram, range, widthPx],
  )
  return (
    <svg className={classes.bars} width={widthPx} height={HEIGHT_PX} aria-hidden="true">
      {counts.map(({ topPx, label }) => (
        <g key={topPx}>
          <path
            className={classes.grid}
            d={`M${EDGE_PX.left} ${topPx}.5H${widthPx - EDGE_PX.right}`}
          />
          <text x={EDGE_PX.left - 6} y={topPx} dy="0.35em" textAnchor="end">
            {label}
          </text>
        </g>
      ))}
      {histogram.series.map(({ value }, index) => (
        <path key={index} d={outlines[index]} fill={colorOf(scheme, value)} />
      ))}
      {times.map(({ leftPx, label }) => (
        <text key={leftPx} x={leftPx} y={HEIGHT_PX - 11} textAnchor="middle">
          {label}
        </text>
      ))}
    </svg>
  )
})
