import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { updateTemplate } from '../../../outlet/saved/template-store.ts'
import { TemplateChange, TemplateParams, TemplateRecord } from '../../schema/dashboard/templates.ts'
import { actorOf, audited } from '../audit.ts'
import { changedFields } from '../changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../name-input.ts'
import {
  getChangeableTemplate,
  getVisibleTemplate,
  templateResource,
  templateRecord,
  validateBody,
} from './template-resource.ts'

/** PATCH /dashboard/export-templates/{templateId} */
export const updateExportTemplate =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.patch(
      '/dashboard/export-templates/:templateId',
      {
        ...deps.signedIn('templates.manage'),
        schema: {
          operationId: 'updateExportTemplate',
          summary: 'Update a template',
          description: 'The owner, an OWNER or an ADMIN can change a template.',
          tags: ['Templates'],
          params: TemplateParams,
          body: TemplateChange,
          errors: ['conflict'],
          response: {
            200: TemplateRecord,
          },
        },
      },
      async (request) => {
        const { viewer, params } = request
        const { name: named, body } = request.body
        const name = named === undefined ? undefined : readName(named)
        const changed = await audited(deps, actorOf(request), async (trx, note) => {
          const template = await getChangeableTemplate(trx, viewer, params.templateId)
          const changes = {
            ...(name !== undefined && { name }),
            ...(body !== undefined && {
              body,
              workspaceId: await validateBody({ ...deps, db: trx }, viewer, body),
            }),
          }
          const changed = changedFields(template, changes)
          if (!changed) return template
          await updateTemplate(trx, template, changes, new Date(deps.clock()))
          note({
            action: 'EXPORT_TEMPLATE_CHANGED',
            resource: templateResource(template),
            metadata: changed,
          })
          return await getVisibleTemplate(trx, viewer, template.id)
        })
        return templateRecord(viewer, changed)
      },
    )
  }
