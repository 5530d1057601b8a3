import type { Grant } from './GrantFields.tsx'
import { needsWorkspaces } from './members.ts'

/** What of it is sent: a role with the whole company names no workspaces. */
export function sentGrant({ role, workspaceIds }: Grant): Grant {
  return { role, workspaceIds: needsWorkspaces(role) ? workspaceIds : [] }
}

export function isComplete({ role, workspaceIds }: Grant): boolean {
  return !needsWorkspaces(role) || workspaceIds.length > 0
}
