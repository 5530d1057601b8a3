import { findSchedule, saveSchedule } from '../../../outlet/export/schedule/schedule-store.ts'
import { templateStore } from '../../../outlet/saved/template-store.ts'
import { defineRoute } from '../../define-route.ts'
import { TemplateChange, TemplateParams, TemplateRecord } from '../../schema/dashboard/templates.ts'
import { actorOf, audited } from '../member-caller.ts'
import { changedFields } from '../../../platform/changed-fields.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import {
  getChangeableTemplate,
  getVisibleTemplate,
  templateResource,
  templateRecord,
  validateBody,
} from './template-resource.ts'
import { scheduleSettings } from './schedule-settings.ts'

/** PATCH /dashboard/export-templates/{templateId} */
export const updateExportTemplate = defineRoute({
  method: 'PATCH',
  path: '/dashboard/export-templates/:templateId',
  member: 'templates.manage',
  summary: 'Update a template',
  description:
    'The owner, an OWNER or an ADMIN can change a template. Its schedule uses the new settings from the next period on.',
  params: TemplateParams,
  body: TemplateChange,
  errors: ['conflict'],
  response: TemplateRecord,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { viewer, params } = request
    const { name: named, body } = request.body
    const name = named === undefined ? undefined : readName(named)
    const changed = await audited(deps, actorOf(request), async (trx, record) => {
      const template = await getChangeableTemplate(trx, viewer, params.templateId)
      const changes = {
        ...(name !== undefined && { name }),
        ...(body !== undefined && {
          body,
          workspaceId: await validateBody({ ...deps, db: trx }, viewer, body),
        }),
      }
      const changed = changedFields(template, changes)
      const schedule = await findSchedule(trx, {
        companyId: viewer.companyId,
        templateId: template.id,
      })
      if (!changed) return { template, schedule }
      await templateStore.update(trx, template, changes, new Date(deps.clock()))
      record({
        action: 'EXPORT_TEMPLATE_CHANGED',
        resource: templateResource(template),
        metadata: changed,
      })
      const after = await getVisibleTemplate(trx, viewer, template.id)
      if (schedule) {
        const settings = await scheduleSettings({ ...deps, db: trx }, viewer, after)
        await saveSchedule(trx, { ...schedule, ...settings }, new Date(deps.clock()))
      }
      return { template: after, schedule }
    })
    return templateRecord(viewer, changed.template, changed.schedule)
  },
})
