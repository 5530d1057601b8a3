import { readCompleteSinceMs } from '../../../ledger/segment/segment-store.ts'
import { type Arrivals, readArrivals } from '../../../outlet/explorer/arrival/arrivals.ts'
import { DAY_MS } from '../../../platform/time/time-units.ts'
import { formatUtcMs } from '../../../platform/time/utc-time.ts'
import { hotSinceMsOf } from '../../../tenancy/plans.ts'
import { visibleWorkspace } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { invalidParameterError, readFilter } from '../../event/event-filter-input.ts'
import { disconnectSignal } from '../../http/disconnect-signal.ts'
import { ArrivalQuery, ArrivalRecord } from '../../schema/dashboard/integrity.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { formatBars, readOffsets, readRange } from '../explorer/histogram-range.ts'

const RANGE_DAYS_MAX = 366
const RANGE_MS_MAX = RANGE_DAYS_MAX * DAY_MS

/** GET /dashboard/integrity/arrivals: shows whether a workspace received its events as usual. */
export const getArrivals = defineRoute({
  method: 'GET',
  path: '/dashboard/integrity/arrivals',
  member: 'integrity.read',
  config: { hasOwnLimits: true },
  summary: 'Count received events over time',
  description:
    'Counts the hot events of a workspace by the time at which they were received, and those of the same length of time before. Also returns whether any event that is not archived is missing from its chain.',
  query: ArrivalQuery,
  errors: ['not_found'],
  response: ArrivalRecord,
  handle:
    (deps: Pick<DashboardDeps, 'db' | 'clock' | 'searches'>) =>
    async ({ viewer, query: { workspaceId: named, timeZone, ...input } }, reply) => {
      const offsetOf = readOffsets(timeZone)
      const range = readRange(readFilter(input, { fromPath: 'from' }), deps.clock())
      if (range.toMs - range.fromMs > RANGE_MS_MAX) {
        throw invalidParameterError('from', `must be at most ${RANGE_DAYS_MAX} days before to`)
      }
      const workspaceId = await visibleWorkspace(deps.db, viewer, named)
      const hotSinceMs = hotSinceMsOf(viewer.plan, deps.clock())
      const { companyId } = viewer
      const scope = { companyId, workspaceId, hotSinceMs, signal: disconnectSignal(reply) }
      const arrivals = await readArrivals(deps.searches, scope, { range, offsetOf })
      // An operator can archive events before their hot time ends.
      const countedSinceMs = await readCompleteSinceMs(deps.db, [workspaceId], hotSinceMs)
      return { ...toRecord(arrivals), hotSince: formatUtcMs(countedSinceMs) }
    },
})

function toRecord({ range, stepS, bars, counts, previousCounts, late, sequence }: Arrivals) {
  return {
    from: formatUtcMs(range.fromMs),
    to: formatUtcMs(range.toMs),
    stepSeconds: stepS,
    ...formatBars(bars, range),
    counts,
    previousCounts,
    late,
    sequence,
  }
}
