import 'uplot/dist/uPlot.min.css'
import { useComputedColorScheme } from '@mantine/core'
import { useEffect, useLayoutEffect, useRef, useState } from 'react'
import type uPlot from 'uplot'
import type { Histogram } from './event-queries.ts'
import { createChart, stack } from './histogram-chart.ts'
import classes from './Histogram.module.css'
import { HistogramHover, type Hovered } from './HistogramHover.tsx'
import type { TimeWindow } from './time-window.ts'

type ChartProps = {
  histogram: Histogram
  timeWindow: TimeWindow
  onBrush: (fromMs: number, toMs: number) => void
  onZoomOut: () => void
}

/** The bars. What is brushed is shown at once, wider, and its own counts follow. */
export function HistogramChart(props: ChartProps) {
  const { histogram, timeWindow } = props
  const scheme = useComputedColorScheme('light')
  const place = useRef<HTMLDivElement>(null)
  const chart = useRef<uPlot | null>(null)
  const latest = useRef(props)
  const [hovered, setHovered] = useState<Hovered | null>(null)
  useLayoutEffect(() => {
    latest.current = props
  })

  // The chart itself depends on how many colours there are; counts and range are given to it later.
  const values = JSON.stringify(histogram.series.map(({ value }) => value))
  useEffect(() => {
    if (!place.current) return undefined
    const made = createChart(place.current, latest.current.histogram, {
      scheme,
      events: {
        range: () => latest.current.timeWindow,
        onBrush: (fromMs, toMs) => latest.current.onBrush(fromMs, toMs),
        onZoomOut: () => latest.current.onZoomOut(),
        onHover: (at) => setHovered((before) => nextHovered(before, at, latest.current.histogram)),
      },
    })
    chart.current = made
    const observer = new ResizeObserver(([entry]) => {
      if (entry) made.setSize({ width: Math.max(1, entry.contentRect.width), height: made.height })
    })
    observer.observe(place.current)
    return () => {
      observer.disconnect()
      made.destroy()
      chart.current = null
    }
  }, [scheme, values])
  useEffect(() => {
    if (chart.current?.series.length === histogram.series.length + 1) {
      chart.current.setData(stack(histogram))
    }
  }, [histogram, timeWindow])

  return (
    <div className={classes.chart}>
      <div ref={place} />
      {hovered && (
        <HistogramHover
          hovered={hovered}
          histogram={histogram}
          scheme={scheme}
          isOnLeft={hovered.leftPx * 2 > (place.current?.clientWidth ?? 0)}
        />
      )}
    </div>
  )
}

/** The same object while the pointer is over the same bar, so that nothing is drawn again. */
function nextHovered(
  before: Hovered | null,
  at: { leftPx: number; ms: number } | null,
  { bars, stepSeconds }: Histogram,
): Hovered | null {
  const first = bars[0]
  if (at === null || first === undefined) return null
  const index = Math.floor((at.ms - Date.parse(first)) / (stepSeconds * 1_000))
  if (index < 0 || index >= bars.length) return null
  return before?.index === index ? before : { index, leftPx: at.leftPx }
}
