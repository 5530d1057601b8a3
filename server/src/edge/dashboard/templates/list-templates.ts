import { Type } from 'typebox'
import { listTemplates } from '../../../outlet/saved/template-store.ts'
import { defineRoute } from '../../define-route.ts'
import { asJsonText, listJson } from '../../page-json.ts'
import { TemplateList } from '../../schema/dashboard/templates.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { templateRecord } from './template-resource.ts'

/** GET /dashboard/export-templates */
export const listExportTemplates = defineRoute({
  method: 'GET',
  path: '/dashboard/export-templates',
  member: 'templates.read',
  summary: 'List templates',
  description: 'Returns the templates that the member can use, by name.',
  // The handler sends a JSON string.
  response: Type.Unsafe<string>(TemplateList),
  handle:
    (deps: Pick<DashboardDeps, 'db'>) =>
    async ({ viewer }, reply) => {
      const templates = await listOrReportDrift(reply, () => listTemplates(deps.db, viewer))
      asJsonText(reply)
      return await listJson('templates', templates, {
        record: (template) => templateRecord(viewer, template),
        owner: viewer.companyId,
      })
    },
})
