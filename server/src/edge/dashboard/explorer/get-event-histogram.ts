import { Type } from 'typebox'
import {
  emptyHistogram,
  GROUPED_EVENTS_MAX,
  GROUPED_METADATA_MAX,
  type Histogram,
  readHistogram,
} from '../../../outlet/explorer/histogram/histogram.ts'
import { formatUtcMs } from '../../../platform/time/utc-time.ts'
import { defineRoute } from '../../define-route.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { compressResponse } from '../../http/compress-response.ts'
import { CountByChoice } from '../../schema/search.ts'
import { DateTime, Nullable, STRICT, TIME_RANGE, TIME_ZONE } from '../../schema/common.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readOrReportDrift } from '../schema-drift.ts'
import { EXPLORED_FILTERS, EXPLORED_TRACE, readExplored } from './explorer-query.ts'
import { formatBars, readOffsets, readRange } from './histogram-range.ts'

const HistogramQuery = Type.Object(
  {
    by: Type.Optional({ ...CountByChoice, default: 'category' }),
    ...TIME_RANGE,
    ...TIME_ZONE,
    ...EXPLORED_FILTERS,
    ...EXPLORED_TRACE,
  },
  STRICT,
)

const HistogramRecord = Type.Object(
  {
    from: { ...DateTime, description: 'Start of the time range.' },
    to: { ...DateTime, description: 'End of the time range.' },
    stepSeconds: Type.Integer({
      description:
        'The length of a bar, in seconds. A bar during which the clocks of the time zone change can be shorter or longer.',
    }),
    total: Type.Integer({ description: 'How many events match the query.' }),
    bars: Type.Array(DateTime, {
      description:
        'The start of each bar. The first and the last bar can extend beyond the time range.',
    }),
    lastBarEnd: { ...DateTime, description: 'The end of the last bar.' },
    series: Type.Array(
      Type.Object(
        {
          value: Nullable(
            Type.String({ description: 'The value. Null: all other values together.' }),
          ),
          total: Type.Integer({ description: 'How many events have it.' }),
          counts: Type.Array(Type.Integer(), { description: 'One count per bar.' }),
        },
        STRICT,
      ),
      {
        description:
          'The eight most frequent values, then all other events together, including those without a value, or with several at a path of the metadata.',
      },
    ),
    isGrouped: Type.Boolean({
      description: `False if more than ${GROUPED_EVENTS_MAX.toLocaleString('en')} events match and \`by\` is neither \`category\` nor \`action\`, or more than ${GROUPED_METADATA_MAX.toLocaleString('en')} and \`by\` is a path of the metadata. Then all events are in one series.`,
    }),
  },
  { ...STRICT, description: 'Event counts over time.' },
)

/** GET /dashboard/events/metrics/histogram: counts events over time. */
export const getEventHistogram = defineRoute({
  method: 'GET',
  path: '/dashboard/events/metrics/histogram',
  member: 'events.read',
  config: { hasOwnLimits: true },
  options: {
    onSend: compressResponse,
  },
  summary: 'Count events over time',
  description:
    'Returns exact counts, by default for the last 24 hours. The length of the bars depends on the time range.',
  query: HistogramQuery,
  errors: ['not_found'],
  response: HistogramRecord,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'searches'>) =>
    async ({ viewer, query: { by = 'category', timeZone, ...input } }, reply) => {
      const offsetOf = readOffsets(timeZone)
      const explored = await readExplored(deps, viewer, input)
      const { filter } = explored
      const scope = { ...explored, signal: disconnectSignal(reply) }
      const range = readRange(filter, deps.clock())
      const options = { range, filter: { ...filter, ...range }, by, offsetOf }
      const histogram = await readOrReportDrift(reply, emptyHistogram(range, offsetOf), () =>
        readHistogram(deps.searches, scope, options),
      )
      return toRecord(histogram)
    },
})

function toRecord({ range, stepS, total, bars, series, isGrouped }: Histogram) {
  return {
    from: formatUtcMs(range.fromMs),
    to: formatUtcMs(range.toMs),
    stepSeconds: stepS,
    total,
    ...formatBars(bars, range),
    series,
    isGrouped,
  }
}
