import { Type } from 'typebox'
import { deleteSchedule } from '../../../outlet/export/schedule/schedule-store.ts'
import { defineRoute } from '../../define-route.ts'
import { TemplateParams } from '../../schema/dashboard/templates.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { actorOf, audited } from '../member-caller.ts'
import { getChangeableTemplate, templateResource } from './template-resource.ts'

/** DELETE /dashboard/export-templates/{templateId}/schedule */
export const unscheduleExportTemplate = defineRoute({
  method: 'DELETE',
  path: '/dashboard/export-templates/:templateId/schedule',
  member: 'templates.manage',
  summary: 'Stop the schedule of a template',
  description:
    'The owner, an OWNER or an ADMIN can stop a schedule. Exports that it created remain. If the template has no schedule, nothing changes.',
  params: TemplateParams,
  response: { 204: Type.Null({ description: 'The template has no schedule.' }) },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    await audited(deps, actorOf(request), async (trx, record) => {
      const { viewer, params } = request
      const template = await getChangeableTemplate(trx, viewer, params.templateId)
      const key = { companyId: viewer.companyId, templateId: template.id }
      if (!(await deleteSchedule(trx, key))) return
      record({
        action: 'EXPORT_SCHEDULE_STOPPED',
        resource: templateResource(template),
        metadata: { name: template.name },
      })
    })
    return null
  },
})
