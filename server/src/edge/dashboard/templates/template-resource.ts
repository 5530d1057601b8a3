import type { Static } from 'typebox'
import { ApiError } from '../../../errors.ts'
import type { ExportSchedule } from '../../../outlet/export/schedule/schedule.ts'
import { type ExportTemplate, mayChangeTemplate } from '../../../outlet/saved/template.ts'
import { templateStore } from '../../../outlet/saved/template-store.ts'
import { parseId, type WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg/database.ts'
import { type Viewer, visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { ExportSettings } from '../../schema/dashboard/exports.ts'
import type { TemplateRecord } from '../../schema/dashboard/templates.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readDashboardExportRequest } from '../exports/export-request.ts'
import { createStoredReader } from '../stored-input.ts'

type Body = Static<typeof ExportSettings>

export const readStoredBody = createStoredReader(ExportSettings, {
  source: 'HOT',
  format: 'JSONL',
})

/** Returns the template in a path if the member can see it. */
export async function getVisibleTemplate(
  db: Queryable,
  viewer: Viewer,
  id: string,
): Promise<ExportTemplate> {
  const templateId = parseId<'export-template'>(id)
  const template = templateId && (await templateStore.find(db, viewer, templateId))
  if (!template) throw new ApiError('not_found')
  return template
}

/** For a change: throws `insufficient_role` if the member can see the template but not change it. */
export async function getChangeableTemplate(
  trx: Queryable,
  viewer: Viewer,
  id: string,
): Promise<ExportTemplate> {
  const templateId = parseId<'export-template'>(id)
  const template = templateId && (await templateStore.lock(trx, viewer, templateId))
  if (!template) throw new ApiError('not_found')
  if (!mayChangeTemplate(viewer, template)) {
    throw new ApiError('insufficient_role', {
      message: `Your role is ${viewer.role}. Only the template's owner, an OWNER or an ADMIN can change it.`,
    })
  }
  return template
}

/**
 * Refuses to save a body that couldn't be run. Returns the workspace that it names, whose members can see the
 * template.
 */
export async function validateBody(
  deps: Pick<DashboardDeps, 'db' | 'clock'>,
  viewer: Viewer,
  body: Body,
): Promise<WorkspaceId | null> {
  try {
    await readDashboardExportRequest(deps, viewer, body)
  } catch (error) {
    if (!(error instanceof ApiError) || error.details === undefined) throw error
    const details = error.details.map(({ path, message }) => ({ path: `/body${path}`, message }))
    throw new ApiError(error.code, { message: error.message, details, cause: error })
  }
  const named = body.filters?.workspaceId
  return (await visibleWorkspaces(deps.db, viewer, named)).workspaceId
}

export function templateRecord(
  viewer: Viewer,
  template: ExportTemplate,
  schedule: ExportSchedule | null,
): Static<typeof TemplateRecord> {
  const { value, isUsable, unusableFields } = readStoredBody(template.body)
  const { ownerId, ownerEmail } = template
  return {
    id: template.id,
    name: template.name,
    workspaceId: template.workspaceId,
    body: value,
    isUsable,
    unusableFields,
    schedule: schedule && scheduleRecord(schedule),
    owner: ownerId === null || ownerEmail === null ? null : { id: ownerId, email: ownerEmail },
    mayChange: mayChangeTemplate(viewer, template),
    createdAt: template.createdAt.toISOString(),
    updatedAt: template.updatedAt.toISOString(),
  }
}

function scheduleRecord({ cadence, dueAt, problem }: ExportSchedule) {
  return { cadence, nextRunAt: dueAt.toISOString(), problem }
}

/** The template as the resource of an audit entry. */
export function templateResource({ id }: Pick<ExportTemplate, 'id'>) {
  return { type: 'export_template', id }
}
