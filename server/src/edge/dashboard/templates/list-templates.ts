import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { listTemplates } from '../../../outlet/saved/template-store.ts'
import { TemplateList } from '../../schema/dashboard/templates.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { templateRecord } from './template-resource.ts'

/** GET /dashboard/export-templates */
export const listExportTemplates =
  (deps: Pick<DashboardDeps, 'db' | 'signedIn'>): FastifyPluginAsyncTypebox =>
  async (app) => {
    app.get(
      '/dashboard/export-templates',
      {
        ...deps.signedIn('templates.read'),
        schema: {
          operationId: 'listExportTemplates',
          summary: 'List templates',
          description: 'Returns the templates that the member can use, by name.',
          tags: ['Templates'],
          response: { 200: TemplateList },
        },
      },
      async ({ viewer }, reply) => {
        const templates = await listOrReportDrift(reply, 'export_template', () =>
          listTemplates(deps.db, viewer),
        )
        return { templates: templates.map((template) => templateRecord(viewer, template)) }
      },
    )
  }
