import { templateStore } from '../../../outlet/saved/template-store.ts'
import { newId } from '../../../platform/id.ts'
import { defineRoute } from '../../define-route.ts'
import { TemplateInput, TemplateRecord } from '../../schema/dashboard/templates.ts'
import { actorOf, audited } from '../member-caller.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../../name-input.ts'
import {
  getVisibleTemplate,
  templateResource,
  templateRecord,
  validateBody,
} from './template-resource.ts'

/** POST /dashboard/export-templates */
export const createExportTemplate = defineRoute({
  method: 'POST',
  path: '/dashboard/export-templates',
  member: 'templates.manage',
  summary: 'Create a template',
  description: 'Saves export settings.',
  body: TemplateInput,
  errors: ['not_found', 'conflict'],
  response: { 201: { ...TemplateRecord, description: 'The new template.' } },
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock'>) => async (request) => {
    const { viewer, body: input } = request
    const name = readName(input.name)
    const workspaceId = await validateBody(deps, viewer, input.body)
    const nowMs = deps.clock()
    const id = newId<'export-template'>(nowMs)
    const template = await audited(deps, actorOf(request), async (trx, record) => {
      const { companyId, userId: ownerId } = viewer
      const content = { workspaceId, name, body: input.body }
      await templateStore.insert(trx, { id, companyId, ownerId, ...content, now: new Date(nowMs) })
      record({
        action: 'EXPORT_TEMPLATE_CREATED',
        resource: templateResource({ id }),
        metadata: content,
      })
      return await getVisibleTemplate(trx, viewer, id)
    })
    return templateRecord(viewer, template, null)
  },
})
