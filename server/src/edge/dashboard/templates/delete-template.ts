import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { deleteTemplate } from '../../../outlet/saved/template-store.ts'
import { refuseBody } from '../../http/no-body.ts'
import { TemplateParams } from '../../schema/dashboard/templates.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getChangeableTemplate, templateResource } from './template-resource.ts'

/** DELETE /dashboard/export-templates/{templateId} */
export const deleteExportTemplate =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.delete(
      '/dashboard/export-templates/:templateId',
      {
        ...deps.signedIn('templates.manage'),
        preValidation: refuseBody,
        schema: {
          operationId: 'deleteExportTemplate',
          summary: 'Delete a template',
          description: 'The owner, an OWNER or an ADMIN can delete a template. Its exports remain.',
          tags: ['Templates'],
          params: TemplateParams,
          response: {
            204: Type.Null({ description: 'It is deleted.' }),
          },
        },
      },
      async (request, reply) => {
        await audited(deps, actorOf(request), async (trx, note) => {
          const { viewer, params } = request
          const template = await getChangeableTemplate(trx, viewer, params.templateId)
          await deleteTemplate(trx, template)
          const { name, workspaceId } = template
          note({
            action: 'EXPORT_TEMPLATE_DELETED',
            resource: templateResource(template),
            metadata: { name, workspaceId },
          })
        })
        return await reply.code(204).send(null)
      },
    )
  }
