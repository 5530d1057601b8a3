import type { Static } from 'typebox'
import type { ExplorerView } from '../../../outlet/console/view.ts'
import type { ExportRequest } from '../../../outlet/export/exporter.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import { type Viewer, visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { readFilter } from '../../event-filter-input.ts'
import { refuseMissingTimes } from '../../export-resource.ts'
import type { DashboardExportInput } from '../../schema/dashboard/exports.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import type { ExplorerInput } from '../explorer/explorer-query.ts'
import { refuseUnusable } from '../stored-input.ts'
import { filtersAt, refuseTwoTimes, timesAt } from '../views/view-input.ts'
import { getVisibleView, readStoredQuery } from '../views/view-resource.ts'

type ExportBody = Static<typeof DashboardExportInput>

/** What a body asks for at this moment, on behalf of whoever sends it: of his workspaces alone. */
export async function readDashboardExportRequest(
  deps: Pick<DashboardDeps, 'db' | 'clock'>,
  viewer: Viewer,
  body: ExportBody,
): Promise<ExportRequest> {
  const { source, format, limit, savedExplorerViewId: viewId } = body
  const nowMs = deps.clock()
  const explicit = explicitFilters(body, nowMs)
  const ofView =
    viewId === undefined ? {} : viewFilters(await getVisibleView(deps.db, viewer, viewId), nowMs)
  const { workspaceId: named, ...filters } = { ...ofView, ...explicit }
  if (source !== 'HOT') refuseMissingTimes(filters)
  const filter = readFilter(filters, { fromPath: '/filters/from' })
  const { workspaceId, workspaceIds } = await visibleWorkspaces(deps.db, viewer, named)
  return {
    companyId: viewer.companyId,
    // Of no key's: a company key finds it, and no workspace key.
    workspaceId: null,
    createdBy: viewer.userId,
    plan: viewer.plan,
    source,
    format,
    filter,
    limit: limit ?? null,
    filterWorkspaceId: workspaceId ?? onlyOne(viewer),
    workspaceIds,
  }
}

function explicitFilters({ filters = {} }: ExportBody, nowMs: number): ExplorerInput {
  refuseTwoTimes(filters, '/filters/range')
  const { range: _range, from: _from, to: _to, ...others } = filters
  return { ...others, ...timesAt(filters, nowMs) }
}

function viewFilters(view: ExplorerView, nowMs: number): ExplorerInput {
  const query = readStoredQuery(view.query)
  refuseUnusable('view', query)
  const { workspaceId } = view
  return { ...filtersAt(query.value, nowMs), ...(workspaceId !== null && { workspaceId }) }
}

/** All that he sees is one workspace: it is named, so that others who see it find the job. */
function onlyOne({ workspaceIds }: Viewer): WorkspaceId | null {
  return workspaceIds?.length === 1 ? (workspaceIds[0] ?? null) : null
}
