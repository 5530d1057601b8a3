import { ApiError } from '../../../errors.ts'
import type { ScheduleSettings } from '../../../outlet/export/schedule/schedule.ts'
import type { ExportTemplate } from '../../../outlet/saved/template.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readDashboardExportRequest } from '../exports/export-request.ts'
import { refuseUnusable } from '../stored-input.ts'
import { readStoredBody } from './template-resource.ts'

/**
 * What a schedule of the template exports. The schedule belongs to the company, so it reads the template's
 * workspace or all of them, and doesn't depend on who is a member by then.
 */
export async function scheduleSettings(
  deps: Pick<DashboardDeps, 'db' | 'clock'>,
  viewer: Viewer,
  template: ExportTemplate,
): Promise<ScheduleSettings> {
  if (template.workspaceId === null && viewer.workspaceIds !== null) {
    throw new ApiError('insufficient_role', {
      message: `Your role is ${viewer.role}. The template names no workspace, so its schedule exports all workspaces of the company, which requires the role OWNER or ADMIN.`,
    })
  }
  const stored = readStoredBody(template.body)
  refuseUnusable('template', stored)
  if (stored.value.savedExplorerViewId !== undefined) {
    throw new ApiError('conflict', {
      message:
        "A template that uses a saved view can't have a schedule, because views belong to members. Save the template with filters of its own.",
    })
  }
  const { range: _range, from: _from, to: _to, ...filters } = stored.value.filters ?? {}
  const body = { ...stored.value, source: 'HOT' as const, filters }
  const { format, filter, evidence, limit } = await readDashboardExportRequest(deps, viewer, body)
  const { name, workspaceId: filterWorkspaceId } = template
  return { name, format, filter, filterWorkspaceId, evidence, limit }
}
