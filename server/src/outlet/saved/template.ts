import { isAllowed } from '../../tenancy/policy.ts'
import { canSeeWorkspace, type Viewer } from '../../tenancy/viewer.ts'
import type { Saved } from './saved.ts'

/** A saved export configuration. Shared with all members who can see its workspace. */
export type ExportTemplate = Saved<'export-template'> & {
  /** As stored. An older version may have written it, so the reader must validate it. */
  body: unknown
}

/** Whether the member can see a template of their own company. */
export function canSeeTemplate(
  viewer: Viewer,
  { workspaceId }: Pick<ExportTemplate, 'workspaceId'>,
): boolean {
  return workspaceId === null || canSeeWorkspace(viewer, workspaceId)
}

/** Whether the member can change a template they can see: its owner can, and so can owners and admins. */
export function mayChangeTemplate(
  viewer: Viewer,
  { ownerId }: Pick<ExportTemplate, 'ownerId'>,
): boolean {
  if (!isAllowed(viewer.role, 'templates.manage')) return false
  return ownerId === viewer.userId || isAllowed(viewer.role, 'company.manage')
}
