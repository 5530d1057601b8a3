import { Type } from 'typebox'
import { templateStore } from '../../../outlet/saved/template-store.ts'
import { defineRoute } from '../../define-route.ts'
import { TemplateParams } from '../../schema/dashboard/templates.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { getChangeableTemplate, templateResource } from './template-resource.ts'

/** DELETE /dashboard/export-templates/{templateId} */
export const deleteExportTemplate = defineRoute({
  method: 'DELETE',
  path: '/dashboard/export-templates/:templateId',
  member: 'templates.manage',
  summary: 'Delete a template',
  description:
    'The owner, an OWNER or an ADMIN can delete a template. Its schedule ends, and its exports remain.',
  params: TemplateParams,
  response: { 204: Type.Null({ description: 'It is deleted.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    await audited(deps, actorOf(request), async (trx, record) => {
      const { viewer, params } = request
      const template = await getChangeableTemplate(trx, viewer, params.templateId)
      await templateStore.delete(trx, template)
      const { name, workspaceId } = template
      record({
        action: 'EXPORT_TEMPLATE_DELETED',
        resource: templateResource(template),
        metadata: { name, workspaceId },
      })
    })
    return null
  },
})
