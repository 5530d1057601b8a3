import type { Static } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { rangeAt, type RelativeRange } from '../../../outlet/explorer/relative-range.ts'
import { formatUtcMs } from '../../../platform/time/utc-time.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import type { ViewQuery } from '../../schema/dashboard/views.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { refuseLargeFilter } from '../../event/stored-size.ts'
import { type Explored, type ExplorerInput, readExplored } from '../explorer/explorer-query.ts'

type Times = { range?: RelativeRange; from?: string; to?: string }

/** Converts a relative range to times as of now. Absolute times stay as they are. */
export function resolveTimes(
  { range, from, to }: Times,
  nowMs: number,
): { from?: string; to?: string } {
  if (range === undefined) {
    return { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  }
  const { fromMs, toMs } = rangeAt(range, nowMs)
  return { from: formatUtcMs(fromMs), to: formatUtcMs(toMs) }
}

/** `path` is the path of the range in the request. */
export function refuseConflictingTimes({ range, from, to }: Times, path: string): void {
  if (range === undefined || (from === undefined && to === undefined)) return
  const message = "can't be combined with from and to"
  throw new ApiError('invalid_request', {
    message: `The request does not match the schema: ${path} ${message}.`,
    details: [{ path, message }],
  })
}

/** Returns a query's filters as of now, without the fields that only affect the display. */
export function resolveFilters(query: Static<typeof ViewQuery>, nowMs: number): ExplorerInput {
  const { range: _range, sort: _sort, columns: _columns, groupBy: _groupBy, ...filters } = query
  return { ...filters, ...resolveTimes(query, nowMs) }
}

type SavedQuery = { workspaceId: string | null; query: Static<typeof ViewQuery> }

/** Resolves a view's filters and workspaces for the member who runs it, not for its creator. */
export async function exploreView(
  deps: Pick<DashboardDeps, 'db' | 'clock'>,
  viewer: Viewer,
  { workspaceId, query }: SavedQuery,
  nowMs: number,
): Promise<Explored> {
  const filters = resolveFilters(query, nowMs)
  return await readExplored(deps, viewer, {
    ...filters,
    ...(workspaceId !== null && { workspaceId }),
  })
}

/** Refuses to save a view that couldn't be run. Errors refer to paths in the body. */
export async function validateView(
  deps: Pick<DashboardDeps, 'db' | 'clock'>,
  viewer: Viewer,
  view: SavedQuery,
): Promise<Explored> {
  refuseConflictingTimes(view.query, '/query/range')
  refuseLargeFilter('/query', view.query)
  try {
    return await exploreView(deps, viewer, view, deps.clock())
  } catch (error) {
    if (!(error instanceof ApiError) || error.details === undefined) throw error
    const details = error.details.map(({ path, message }) => ({ path: `/query/${path}`, message }))
    throw new ApiError(error.code, { message: error.message, details, cause: error })
  }
}
