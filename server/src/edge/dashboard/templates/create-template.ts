import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { insertTemplate } from '../../../outlet/saved/template-store.ts'
import { newId } from '../../../platform/id.ts'
import { TemplateInput, TemplateRecord } from '../../schema/dashboard/templates.ts'
import { actorOf, audited } from '../audit.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readName } from '../name-input.ts'
import {
  getVisibleTemplate,
  templateResource,
  templateRecord,
  validateBody,
} from './template-resource.ts'

/** POST /dashboard/export-templates */
export const createExportTemplate =
  (deps: Pick<DashboardDeps, 'db' | 'clock' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.post(
      '/dashboard/export-templates',
      {
        ...deps.signedIn('templates.manage'),
        schema: {
          operationId: 'createExportTemplate',
          summary: 'Create a template',
          description: 'Saves export settings.',
          tags: ['Templates'],
          body: TemplateInput,
          errors: ['not_found', 'conflict'],
          response: {
            201: { ...TemplateRecord, description: 'The new template.' },
          },
        },
      },
      async (request, reply) => {
        const { viewer, body: input } = request
        const name = readName(input.name)
        const workspaceId = await validateBody(deps, viewer, input.body)
        const nowMs = deps.clock()
        const id = newId<'export-template'>(nowMs)
        const template = await audited(deps, actorOf(request), async (trx, note) => {
          const { companyId, userId: ownerId } = viewer
          const content = { workspaceId, name, body: input.body }
          await insertTemplate(trx, { id, companyId, ownerId, ...content, now: new Date(nowMs) })
          note({
            action: 'EXPORT_TEMPLATE_CREATED',
            resource: templateResource({ id }),
            metadata: content,
          })
          return await getVisibleTemplate(trx, viewer, id)
        })
        return await reply.code(201).send(templateRecord(viewer, template))
      },
    )
  }
