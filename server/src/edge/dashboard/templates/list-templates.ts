import { Type } from 'typebox'
import { listSchedules } from '../../../outlet/export/schedule/schedule-store.ts'
import { templateStore } from '../../../outlet/saved/template-store.ts'
import { defineRoute } from '../../define-route.ts'
import { asJsonText, listJson } from '../../page-json.ts'
import { TemplateList } from '../../schema/dashboard/templates.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { listOrReportDrift } from '../schema-drift.ts'
import { templateRecord } from './template-resource.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import type { Viewer } from '../../../tenancy/viewer.ts'

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
      const templates = await listOrReportDrift(reply, () => listScheduled(deps.db, viewer))
      asJsonText(reply)
      return await listJson('templates', templates, {
        record: ({ template, schedule }) => templateRecord(viewer, template, schedule),
        owner: viewer.companyId,
      })
    },
})

/** The templates that the member can see, each with its schedule. */
async function listScheduled(db: Queryable, viewer: Viewer) {
  const templates = await templateStore.list(db, viewer)
  const schedules = await listSchedules(db, viewer.companyId)
  const byTemplate = new Map(schedules.map((schedule) => [schedule.templateId, schedule]))
  return templates.map((template) => ({
    template,
    schedule: byTemplate.get(template.id) ?? null,
  }))
}
