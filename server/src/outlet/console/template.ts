import type { CompanyId, Id, UserId, WorkspaceId } from '../../platform/id.ts'
import { isAllowed } from '../../tenancy/policy.ts'
import { seesWorkspace, type Viewer } from '../../tenancy/viewer.ts'

export type TemplateId = Id<'export-template'>

/** An export that is made again and again. Everybody has it who sees what it is about. */
export type ExportTemplate = {
  id: TemplateId
  companyId: CompanyId
  /** The one that its filters name; null: all that whoever runs it sees. */
  workspaceId: WorkspaceId | null
  /** Null when that member is gone. */
  ownerId: UserId | null
  ownerEmail: string | null
  name: string
  /** As it was stored; what the present program makes of it is the reader's to find out. */
  body: unknown
  createdAt: Date
  updatedAt: Date
}

/** Of the member's own company. */
export function seesTemplate(
  viewer: Viewer,
  { workspaceId }: Pick<ExportTemplate, 'workspaceId'>,
): boolean {
  return workspaceId === null || seesWorkspace(viewer, workspaceId)
}

/** Of one that he sees: the owner may, and whoever manages the company. */
export function mayChangeTemplate(
  viewer: Viewer,
  { ownerId }: Pick<ExportTemplate, 'ownerId'>,
): boolean {
  if (!isAllowed(viewer.role, 'templates.manage')) return false
  return ownerId === viewer.userId || isAllowed(viewer.role, 'company.manage')
}
