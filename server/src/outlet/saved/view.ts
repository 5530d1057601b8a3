import { isAllowed } from '../../tenancy/policy.ts'
import { canSeeWorkspace, type Viewer } from '../../tenancy/viewer.ts'
import type { Saved } from './saved.ts'

/** PRIVATE: visible only to the owner. WORKSPACE: visible to all members who can see the view's workspace. */
export const VISIBILITIES = ['PRIVATE', 'WORKSPACE'] as const
export type Visibility = (typeof VISIBILITIES)[number]

/** A saved query of the explorer. */
export type ExplorerView = Saved<'explorer-view'> & {
  visibility: Visibility
  /** As stored. An older version may have written it, so the reader must validate it. */
  query: unknown
}

/** Whether the member can see a view of their own company. */
export function canSeeView(
  viewer: Viewer,
  {
    workspaceId,
    ownerId,
    visibility,
  }: Pick<ExplorerView, 'workspaceId' | 'ownerId' | 'visibility'>,
): boolean {
  const isOwnOrShared = visibility === 'WORKSPACE' || ownerId === viewer.userId
  return isOwnOrShared && (workspaceId === null || canSeeWorkspace(viewer, workspaceId))
}

/** Whether the member can change a view they can see. Owners and admins can also change shared views. */
export function mayChangeView(
  viewer: Viewer,
  { ownerId, visibility }: Pick<ExplorerView, 'ownerId' | 'visibility'>,
): boolean {
  if (ownerId === viewer.userId) return true
  return visibility === 'WORKSPACE' && isAllowed(viewer.role, 'company.manage')
}
