import { updateTemplate } from '../../../outlet/saved/template-store.ts'
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

/** PATCH /dashboard/export-templates/{templateId} */
export const updateExportTemplate = defineRoute({
  method: 'PATCH',
  path: '/dashboard/export-templates/:templateId',
  member: 'templates.manage',
  summary: 'Update a template',
  description: 'The owner, an OWNER or an ADMIN can change a template.',
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
      if (!changed) return template
      await updateTemplate(trx, template, changes, new Date(deps.clock()))
      record({
        action: 'EXPORT_TEMPLATE_CHANGED',
        resource: templateResource(template),
        metadata: changed,
      })
      return await getVisibleTemplate(trx, viewer, template.id)
    })
    return templateRecord(viewer, changed)
  },
})
