import { ApiError } from '../errors.ts'
import { type CompanyId, type Id, parseId, type UserId, type WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg/database.ts'
import type { Plan } from './plans.ts'
import type { Role } from './member/user-store.ts'
import { hasWorkspace, listCustomerWorkspaces } from './workspace/workspace-store.ts'

export type SessionId = Id<'session'>

/** The signed-in member, with everything that later checks need. */
export type Viewer = {
  sessionId: SessionId
  userId: UserId
  email: string
  role: Role
  companyId: CompanyId
  companyName: string
  plan: Plan
  /** The company requires a second factor, and the member has none. */
  needsSecondFactor: boolean
  /** The address ranges that the company allows for its dashboard. Null for all addresses. */
  allowedRanges: readonly string[] | null
  /** The workspaces granted to an ANALYST or VIEWER. Null means the whole company with its own audit. */
  workspaceIds: readonly WorkspaceId[] | null
}

/**
 * The workspaces that a request covers: the named one, or all that the member can see, without the
 * company's own audit. A workspace the member can't see gets the same error as one that doesn't exist.
 */
export async function visibleWorkspaces(
  db: Queryable,
  { companyId, workspaceIds }: Viewer,
  named: string | undefined,
): Promise<{ workspaceId: WorkspaceId | null; workspaceIds: WorkspaceId[] }> {
  if (named === undefined) {
    const all = await listCustomerWorkspaces(db, companyId)
    return { workspaceId: null, workspaceIds: all.filter((id) => isGranted(workspaceIds, id)) }
  }
  const workspaceId = parseId<'workspace'>(named)
  const isVisible =
    workspaceId !== null &&
    isGranted(workspaceIds, workspaceId) &&
    (await hasWorkspace(db, { companyId, workspaceId }))
  if (!isVisible) throw new ApiError('not_found')
  return { workspaceId, workspaceIds: [workspaceId] }
}

export async function visibleWorkspace(
  db: Queryable,
  viewer: Viewer,
  named: string,
): Promise<WorkspaceId> {
  const { workspaceId } = await visibleWorkspaces(db, viewer, named)
  if (workspaceId === null) throw new ApiError('not_found')
  return workspaceId
}

/** Whether a member can see a workspace of their company. */
export function canSeeWorkspace({ workspaceIds }: Viewer, workspaceId: WorkspaceId): boolean {
  return isGranted(workspaceIds, workspaceId)
}

/** Whether a member can see every workspace that another viewer, or the same one earlier, can see. */
export function canSeeAll(viewer: Viewer, { workspaceIds }: Viewer): boolean {
  if (workspaceIds === null) return viewer.workspaceIds === null
  return workspaceIds.every((id) => canSeeWorkspace(viewer, id))
}

function isGranted(granted: Viewer['workspaceIds'], workspaceId: WorkspaceId): boolean {
  return granted === null || granted.includes(workspaceId)
}
