import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '../../../errors.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'
import { refuseBody } from '../../http/no-body.ts'
import { DashboardExport } from '../../schema/dashboard/exports.ts'
import { TemplateParams } from '../../schema/dashboard/templates.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { requestExport } from '../exports/visible-export.ts'
import { refuseUnusable } from '../stored-input.ts'
import { getVisibleView } from '../views/view-resource.ts'
import { getVisibleTemplate, readStoredBody } from './template-resource.ts'

/** POST /dashboard/export-templates/{templateId}/run: creates an export for the member who runs it. */
export const runExportTemplate =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'exports' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/export-templates/:templateId/run',
      {
        ...deps.signedIn('exports.create'),
        preValidation: refuseBody,
        schema: {
          operationId: 'runExportTemplate',
          summary: 'Run a template',
          description:
            'The same as `POST /dashboard/exports` with the body of the template, for the workspaces that the signed-in member can see.',
          tags: ['Templates'],
          params: TemplateParams,
          errors: ['plan_required', 'conflict'],
          response: {
            201: {
              ...DashboardExport,
              description: 'The new export job. Download it within seven days.',
            },
          },
        },
      },
      async (request, reply) => {
        const { viewer, params } = request
        const template = await getVisibleTemplate(deps.db, viewer, params.templateId)
        const body = readStoredBody(template.body)
        refuseUnusable('template', body)
        await refuseLostView(deps.db, viewer, body.value.savedExplorerViewId)
        const origin = { templateId: template.id }
        return await reply.code(201).send(await requestExport(deps, request, body.value, origin))
      },
    )
  }

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
