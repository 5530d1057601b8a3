import { ApiError } from '../../../errors.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { defineRoute } from '../../define-route.ts'
import { DashboardExport } from '../../schema/dashboard/exports.ts'
import { TemplateParams } from '../../schema/dashboard/templates.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { requestExport } from '../exports/visible-export.ts'
import { refuseUnusable } from '../stored-input.ts'
import { getVisibleView } from '../views/view-resource.ts'
import { getVisibleTemplate, readStoredBody } from './template-resource.ts'

/** POST /dashboard/export-templates/{templateId}/run: creates an export for the member who runs it. */
export const runExportTemplate = defineRoute({
  method: 'POST',
  path: '/dashboard/export-templates/:templateId/run',
  member: 'exports.create',
  summary: 'Run a template',
  description:
    'The same as `POST /dashboard/exports` with the name and the body of the template, for the workspaces that the signed-in member can see.',
  params: TemplateParams,
  errors: ['plan_required', 'conflict'],
  response: {
    201: {
      ...DashboardExport,
      description: 'The new export job. Download it within seven days.',
    },
  },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports'>) => async (request) => {
    const { viewer, params } = request
    const template = await getVisibleTemplate(deps.db, viewer, params.templateId)
    const body = readStoredBody(template.body)
    refuseUnusable('template', body)
    await refuseLostView(deps.db, viewer, body.value.savedExplorerViewId)
    const named = { name: template.name, ...body.value }
    return await requestExport(deps, request, named, { templateId: template.id })
  },
})

/** The template exists, so a plain 404 for its view would mislead. */
async function refuseLostView(
  db: Queryable,
  viewer: Viewer,
  viewId: string | undefined,
): Promise<void> {
  if (viewId === undefined) return
  try {
    await getVisibleView(db, viewer, viewId)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error
    throw new ApiError('conflict', {
      message:
        'The saved view that this template uses was deleted or is not shared with you. Save the template again with another view or its own filters.',
      cause: error,
    })
  }
}
