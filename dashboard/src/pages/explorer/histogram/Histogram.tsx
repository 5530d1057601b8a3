import {
  Button,
  NativeSelect,
  Skeleton,
  useComputedColorScheme,
  VisuallyHidden,
} from '@mantine/core'
import { memo, type ReactNode } from 'react'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { formatCount } from '../../../parts/text/format.ts'
import { colorOf } from '../../../parts/chart/name-color.ts'
import { type CountBy, COUNTED_FIELDS, countLabel, metadataPath } from '../count-by.ts'
import { FacetsToggle } from '../facets/FacetsToggle.tsx'
import type { Histogram as Counts } from '../event-queries.ts'
import { barText, countsAt, stepText } from './histogram-text.ts'
import classes from './Histogram.module.css'
import { HistogramChart } from './HistogramChart.tsx'
import { metadataText } from '../../../query/metadata.ts'
import { exactPatch, type TimeWindow, windowText } from '../../../query/time-window.ts'
import { addPatch, type SearchPatch } from '../../../query/explorer-search.ts'
import type { Change } from '../use-explorer.ts'
import { TimeZoneSelect } from '../../../parts/time/TimeZoneSelect.tsx'

type HistogramProps = {
  counts: Counts | undefined
  error: Error | null
  /** Another part of the page already shows an error, so this one doesn't repeat it. */
  isErrorShownElsewhere: boolean
  /** The counts are still those of the previous query. */
  isBusy: boolean
  timeWindow: TimeWindow
  timeZone: string
  by: CountBy
  /** Paths of the metadata to offer for grouping. */
  metadataPaths: readonly string[]
  change: Change
  zoomOut: () => void
  /** The number of events in the period before. */
  comparison: ReactNode
}

/** The number of events over time, grouped by a field. */
export const Histogram = memo(function Histogram(props: HistogramProps) {
  const { counts, error, isErrorShownElsewhere, isBusy, timeWindow, timeZone } = props
  const { by, metadataPaths, change, zoomOut, comparison } = props
  return (
    <section className={classes.part} aria-label="Events over time">
      <div className={classes.line}>
        <span role="status" className="numeric">
          {counts && !isBusy ? (
            <strong>
              {formatCount(counts.total)} {counts.total === 1 ? 'event' : 'events'}
            </strong>
          ) : (
            <span className="soft">
              {error || isErrorShownElsewhere ? 'Count unavailable' : 'Counting…'}
            </span>
          )}
        </span>
        {comparison}
        <span className={`${classes.hint} soft`}>
          {counts && `1 bar = ${stepText(counts.stepSeconds)} · drag to zoom`}
        </span>
        <span className={classes.controls}>
          {timeWindow.range === null && (
            <Button size="compact-xs" variant="subtle" onClick={zoomOut}>
              Zoom out
            </Button>
          )}
          <FacetsToggle />
          <NativeSelect
            size="xs"
            variant="unstyled"
            aria-label="Group by"
            classNames={{ input: classes.by }}
            data={byChoices(by, metadataPaths)}
            value={by}
            onChange={(event) => change({ by: event.currentTarget.value })}
          />
        </span>
      </div>
      <ErrorBox error={isErrorShownElsewhere ? null : error} />
      {counts ? (
        <>
          <HistogramChart
            histogram={counts}
            timeWindow={timeWindow}
            timeZone={timeZone}
            onBrush={(fromMs, toMs) => change(exactPatch(fromMs, toMs))}
            onZoomOut={zoomOut}
          />
          {!counts.isGrouped && !isBusy && (
            <p className={`${classes.tooMany} soft`}>
              There are too many events to group them by {countLabel(by)}. Choose a shorter period
              or add a filter.
            </p>
          )}
          <Legend counts={counts} by={by} change={change} />
          <CountTable counts={counts} timeWindow={timeWindow} timeZone={timeZone} />
        </>
      ) : (
        !error && !isErrorShownElsewhere && <Skeleton height={180} radius="sm" />
      )}
    </section>
  )
})

/** The fields, and paths of the metadata of the loaded events. */
function byChoices(by: CountBy, paths: readonly string[]) {
  const own = metadataPath(by)
  const shown = own === null || paths.includes(own) ? paths : [own, ...paths]
  const choiceOf = (value: CountBy) => ({ value, label: `By ${countLabel(value)}` })
  const fields = { group: 'Field', items: COUNTED_FIELDS.map(choiceOf) }
  const keys = shown.map((path) => choiceOf(`metadata.${path}`))
  return keys.length === 0 ? fields.items : [fields, { group: 'Metadata', items: keys }]
}

/** Adds the value to the filters. */
function valuePatch(by: CountBy, value: string): SearchPatch {
  const path = metadataPath(by)
  return path === null ? addPatch({ [by]: value }) : { addMetadata: metadataText({ path, value }) }
}

function Legend({ counts, by, change }: { counts: Counts; by: CountBy; change: Change }) {
  const scheme = useComputedColorScheme('light')
  return (
    <div className={classes.legend}>
      {counts.series.map(({ value, label, total }) => {
        const swatch = (
          <i className={classes.swatch} style={{ background: colorOf(scheme, value) }} />
        )
        if (value === null) {
          return (
            <span className={classes.kind} key="others">
              {swatch}
              {label} <span className="soft numeric">{formatCount(total)}</span>
            </span>
          )
        }
        return (
          <button
            type="button"
            className={classes.kind}
            key={value}
            title={`Filter by ${countLabel(by)}: ${label ?? value}`}
            onClick={() => change(valuePatch(by, value))}
          >
            {swatch}
            <span className="truncate">{label ?? value}</span>
            <span className="soft numeric">{formatCount(total)}</span>
            <VisuallyHidden>events, filter by this {countLabel(by)}</VisuallyHidden>
          </button>
        )
      })}
      <span className={classes.zone}>
        <TimeZoneSelect className={classes.by} />
      </span>
    </div>
  )
}

/** The same counts for screen readers. */
const CountTable = memo(function CountTable({
  counts,
  timeWindow,
  timeZone,
}: Pick<HistogramProps, 'timeWindow' | 'timeZone'> & { counts: Counts }) {
  return (
    <VisuallyHidden>
      <table>
        <caption>
          Events over time, {windowText(timeWindow)}. Time zone: {timeZone}. Periods without events
          are omitted.
        </caption>
        <thead>
          <tr>
            <th>Time</th>
            <th>Events</th>
          </tr>
        </thead>
        <tbody>
          {counts.bars.map((bar, index) => {
            const parts = countsAt(counts, index).filter(({ count }) => count > 0)
            if (parts.length === 0) return null
            return (
              <tr key={bar}>
                <th scope="row">{barText(counts, index)}</th>
                <td>
                  {parts.map(({ name, count }) => `${name} ${formatCount(count)}`).join(', ')}
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </VisuallyHidden>
  )
})
