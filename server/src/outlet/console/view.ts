import type { CompanyId, Id, UserId, WorkspaceId } from '../../platform/id.ts'
import { isAllowed } from '../../tenancy/policy.ts'
import { seesWorkspace, type Viewer } from '../../tenancy/viewer.ts'

export type ViewId = Id<'explorer-view'>

/** PRIVATE: the owner's alone. WORKSPACE: of whoever sees the view's workspace. */
export const VISIBILITIES = ['PRIVATE', 'WORKSPACE'] as const
export type Visibility = (typeof VISIBILITIES)[number]

/** A query that somebody saved. */
export type ExplorerView = {
  id: ViewId
  companyId: CompanyId
  /** Null: all that whoever runs it sees. */
  workspaceId: WorkspaceId | null
  /** Null when that member is gone. */
  ownerId: UserId | null
  ownerEmail: string | null
  name: string
  visibility: Visibility
  /** As it was stored; what the present program makes of it is the reader's to find out. */
  query: unknown
  createdAt: Date
  updatedAt: Date
}

/** Of the member's own company. */
export function seesView(
  viewer: Viewer,
  {
    workspaceId,
    ownerId,
    visibility,
  }: Pick<ExplorerView, 'workspaceId' | 'ownerId' | 'visibility'>,
): boolean {
  const isGiven = visibility === 'WORKSPACE' || ownerId === viewer.userId
  return isGiven && (workspaceId === null || seesWorkspace(viewer, workspaceId))
}

/** Of one that he sees: the owner may, and whoever manages the company may change what is shared. */
export function mayChangeView(
  viewer: Viewer,
  { ownerId, visibility }: Pick<ExplorerView, 'ownerId' | 'visibility'>,
): boolean {
  if (ownerId === viewer.userId) return true
  return visibility === 'WORKSPACE' && isAllowed(viewer.role, 'company.manage')
}
