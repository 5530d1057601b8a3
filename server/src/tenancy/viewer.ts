import { ApiError } from '../errors.ts'
import { type CompanyId, type Id, parseId, type UserId, type WorkspaceId } from '../platform/id.ts'
import type { Queryable } from '../platform/pg.ts'
import type { Plan } from './plans.ts'
import type { Role } from './user-store.ts'
import { hasWorkspace, listCustomerWorkspaces } from './workspace-store.ts'

export type SessionId = Id<'session'>

/** Whoever is signed in, as far as every later check needs it. */
export type Viewer = {
  sessionId: SessionId
  userId: UserId
  email: string
  role: Role
  companyId: CompanyId
  companyName: string
  plan: Plan
  /** Those that an ANALYST or VIEWER is given; null: the whole company, its own audit included. */
  workspaceIds: readonly WorkspaceId[] | null
}

/**
 * The workspaces that a request is about: the named one, or all that the member sees, without the
 * company's own audit. One that he may not see answers like one that does not exist.
 */
export async function visibleWorkspaces(
  db: Queryable,
  { companyId, workspaceIds }: Viewer,
  named: string | undefined,
): Promise<{ workspaceId: WorkspaceId | null; workspaceIds: WorkspaceId[] }> {
  if (named === undefined) {
    const all = await listCustomerWorkspaces(db, companyId)
    return { workspaceId: null, workspaceIds: all.filter((id) => isGiven(workspaceIds, id)) }
  }
  const workspaceId = parseId<'workspace'>(named)
  const isVisible =
    workspaceId !== null &&
    isGiven(workspaceIds, workspaceId) &&
    (await hasWorkspace(db, { companyId, workspaceId }))
  if (!isVisible) throw new ApiError('not_found')
  return { workspaceId, workspaceIds: [workspaceId] }
}

/** The named one. */
export async function visibleWorkspace(
  db: Queryable,
  viewer: Viewer,
  named: string,
): Promise<WorkspaceId> {
  const { workspaceId } = await visibleWorkspaces(db, viewer, named)
  if (workspaceId === null) throw new ApiError('not_found')
  return workspaceId
}

/** Whether a member sees a workspace of his company. */
export function seesWorkspace({ workspaceIds }: Viewer, workspaceId: WorkspaceId): boolean {
  return isGiven(workspaceIds, workspaceId)
}

/** Whether a member sees at least what another one, or the same one earlier, sees. */
export function seesAllOf(viewer: Viewer, { workspaceIds }: Viewer): boolean {
  if (workspaceIds === null) return viewer.workspaceIds === null
  return workspaceIds.every((id) => seesWorkspace(viewer, id))
}

function isGiven(given: Viewer['workspaceIds'], workspaceId: WorkspaceId): boolean {
  return given === null || given.includes(workspaceId)
}
