import { ApiError } from '../../../errors.ts'
import {
  dueAtOf,
  type ExportSchedule,
  periodEndAfter,
} from '../../../outlet/export/schedule/schedule.ts'
import { findSchedule, saveSchedule } from '../../../outlet/export/schedule/schedule-store.ts'
import { hasExports } from '../../../tenancy/plans.ts'
import { defineRoute } from '../../define-route.ts'
import { ScheduleInput, TemplateParams, TemplateRecord } from '../../schema/dashboard/templates.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { actorOf, audited } from '../member-caller.ts'
import { scheduleSettings } from './schedule-settings.ts'
import { getChangeableTemplate, templateRecord, templateResource } from './template-resource.ts'

const NO_ARCHIVE =
  "Exports can't be scheduled, because no archive is configured. Set ANNALS_ARCHIVE_URL; with ANNALS_DATABASE_URL, it has no default."

/** PUT /dashboard/export-templates/{templateId}/schedule */
export const scheduleExportTemplate = defineRoute({
  method: 'PUT',
  path: '/dashboard/export-templates/:templateId/schedule',
  member: 'templates.manage',
  summary: 'Schedule a template',
  description:
    'Exports the template after the end of every day, week or month in UTC. The files are stored for 90 days. They contain the hot and archived events of that period, whatever the source and the period of the template. The owner, an OWNER or an ADMIN can schedule a template. If it names no workspace, only an OWNER or ADMIN can.',
  params: TemplateParams,
  body: ScheduleInput,
  errors: ['plan_required', 'conflict'],
  response: TemplateRecord,
  handle: (deps: Pick<DashboardDeps, 'db' | 'clock' | 'hasArchive'>) => async (request) => {
    const { viewer, params, body } = request
    if (!hasExports(viewer.plan)) throw new ApiError('plan_required')
    const { template, schedule } = await audited(deps, actorOf(request), async (trx, record) => {
      const template = await getChangeableTemplate(trx, viewer, params.templateId)
      if (!deps.hasArchive) throw new ApiError('conflict', { message: NO_ARCHIVE })
      const key = { companyId: viewer.companyId, templateId: template.id }
      const before = await findSchedule(trx, key)
      if (before?.cadence === body.cadence) return { template, schedule: before }
      const settings = await scheduleSettings({ ...deps, db: trx }, viewer, template)
      const periodEndMs = periodEndAfter(body.cadence, deps.clock())
      const next = { periodEndMs, dueAt: dueAtOf(periodEndMs), problem: null }
      const schedule: ExportSchedule = { ...key, ...settings, ...next, cadence: body.cadence }
      await saveSchedule(trx, schedule, new Date(deps.clock()))
      record({
        action: 'EXPORT_SCHEDULE_SET',
        resource: templateResource(template),
        metadata: { name: template.name, before: before?.cadence ?? null, after: body.cadence },
      })
      return { template, schedule }
    })
    return templateRecord(viewer, template, schedule)
  },
})
