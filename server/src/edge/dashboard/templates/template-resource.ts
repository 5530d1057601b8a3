import type { Static } from 'typebox'
import { ApiError } from '../../../errors.ts'
import { type ExportTemplate, mayChangeTemplate } from '../../../outlet/console/template.ts'
import { findTemplate, lockTemplate } from '../../../outlet/console/template-store.ts'
import { parseId, type WorkspaceId } from '../../../platform/id.ts'
import type { Queryable } from '../../../platform/pg.ts'
import { type Viewer, visibleWorkspaces } from '../../../tenancy/viewer.ts'
import { DashboardExportInput } from '../../schema/dashboard/exports.ts'
import type { TemplateRecord } from '../../schema/dashboard/templates.ts'
import type { DashboardDeps } from '../dashboard-deps.ts'
import { readDashboardExportRequest } from '../exports/export-request.ts'
import { createStoredReader } from '../stored-input.ts'

type Body = Static<typeof DashboardExportInput>

export const readStoredBody = createStoredReader(DashboardExportInput, {
  source: 'HOT',
  format: 'JSONL',
})

/** What a path names, for whoever sees it. */
export async function getVisibleTemplate(
  db: Queryable,
  viewer: Viewer,
  id: string,
): Promise<ExportTemplate> {
  const templateId = parseId<'export-template'>(id)
  const template = templateId && (await findTemplate(db, viewer, templateId))
  if (!template) throw new ApiError('not_found')
  return template
}

/** The same for a change: whoever sees it and may not change it is told so. */
export async function getChangeableTemplate(
  trx: Queryable,
  viewer: Viewer,
  id: string,
): Promise<ExportTemplate> {
  const templateId = parseId<'export-template'>(id)
  const template = templateId && (await lockTemplate(trx, viewer, templateId))
  if (!template) throw new ApiError('not_found')
  if (!mayChangeTemplate(viewer, template)) {
    throw new ApiError('insufficient_role', {
      message: `Your role is ${viewer.role}; a template is changed by its owner, an OWNER or an ADMIN.`,
    })
  }
  return template
}

/**
 * Refuses to save what could not be run, and says whose the template is: of whoever sees the workspace
 * that it names.
 */
export async function tryBody(
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
    owner: ownerId === null || ownerEmail === null ? null : { id: ownerId, email: ownerEmail },
    mayChange: mayChangeTemplate(viewer, template),
    createdAt: template.createdAt.toISOString(),
    updatedAt: template.updatedAt.toISOString(),
  }
}

/** How the audit names it. */
export function resourceOf({ id }: Pick<ExportTemplate, 'id'>) {
  return { type: 'export_template', id }
}
