import type { Static } from 'typebox'
import type { ExplorerView } from '../../../outlet/saved/view.ts'
import type { ExportRequest } from '../../../outlet/export/exporter.ts'
import type { WorkspaceId } from '../../../platform/id.ts'
import { type Viewer, visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { EXCLUDED_FIELDS } from '../../../ledger/filter/exclusion.ts'
import { exclusionText, readValues } from '../../event/exclusion-text.ts'
import { readFilter } from '../../event/event-filter-input.ts'
import { readOptionalName } from '../../name-input.ts'
import { readEvidence, refuseMissingTimes } from '../../export/export-resource.ts'
import type { DashboardExportInput } from '../../schema/dashboard/exports.ts'
import { refuseLargeFilter } from '../../event/stored-size.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import type { ExplorerInput } from '../explorer/explorer-query.ts'
import { refuseUnusable } from '../stored-input.ts'
import { resolveFilters, refuseConflictingTimes, resolveTimes } from '../views/view-input.ts'
import { getVisibleView, readStoredQuery } from '../views/view-resource.ts'

type ExportBody = Static<typeof DashboardExportInput>

/** Reads an export request at the current time, limited to the workspaces that the member can see. */
export async function readDashboardExportRequest(
  deps: Pick<DashboardDeps, 'db' | 'clock'>,
  viewer: Viewer,
  body: ExportBody,
): Promise<ExportRequest> {
  const { name, source, format, evidence, limit, savedExplorerViewId: viewId } = body
  const nowMs = deps.clock()
  const explicit = explicitFilters(body, nowMs)
  const ofView =
    viewId === undefined ? {} : viewFilters(await getVisibleView(deps.db, viewer, viewId), nowMs)
  const { workspaceId: named, ...filters } = overrideFilters(ofView, explicit)
  if (source !== 'HOT') refuseMissingTimes(filters)
  const filter = readFilter(filters, { fromPath: '/filters/from' })
  const { workspaceId, workspaceIds } = await visibleWorkspaces(deps.db, viewer, named)
  return {
    companyId: viewer.companyId,
    // Not owned by a workspace: company keys can find the job, workspace keys can't.
    workspaceId: null,
    createdBy: viewer.userId,
    name: readOptionalName(name),
    plan: viewer.plan,
    source,
    format,
    filter,
    evidence: readEvidence(evidence, format),
    limit: limit ?? null,
    filterWorkspaceId: workspaceId ?? onlyWorkspace(viewer),
    workspaceIds,
  }
}

function explicitFilters({ filters = {} }: ExportBody, nowMs: number): ExplorerInput {
  refuseConflictingTimes(filters, '/filters/range')
  refuseLargeFilter('/filters', filters)
  const { range: _range, from: _from, to: _to, ...others } = filters
  return { ...others, ...resolveTimes(filters, nowMs) }
}

function viewFilters(view: ExplorerView, nowMs: number): ExplorerInput {
  const query = readStoredQuery(view.query)
  refuseUnusable('view', query)
  const { workspaceId } = view
  return { ...resolveFilters(query.value, nowMs), ...(workspaceId !== null && { workspaceId }) }
}

/** A field or path that the request names replaces all values of the view's field or path. */
function overrideFilters(ofView: ExplorerInput, explicit: ExplorerInput): ExplorerInput {
  const isNamed = new Set(readValues(explicit.anyOf ?? []).map(({ field }) => field))
  for (const field of EXCLUDED_FIELDS) if (explicit[field] !== undefined) isNamed.add(field)
  const { anyOf: ofViewAnyOf = [], ...kept } = ofView
  for (const field of isNamed) delete kept[field]
  const others = readValues(ofViewAnyOf).filter(({ field }) => !isNamed.has(field))
  const anyOf = [...others.map(exclusionText), ...(explicit.anyOf ?? [])]
  const metadata = { ...ofView.metadata, ...explicit.metadata }
  return {
    ...kept,
    ...explicit,
    ...(anyOf.length > 0 && { anyOf }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
}

/** If the member can see only one workspace, the job names it, so that others who see it can find the job. */
function onlyWorkspace({ workspaceIds }: Viewer): WorkspaceId | null {
  return workspaceIds?.length === 1 ? (workspaceIds[0] ?? null) : null
}
