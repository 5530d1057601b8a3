import type { Grant } from './GrantFields.tsx'
import { needsWorkspaces } from './members.ts'

/** The grant to send. Roles that cover the whole company name no workspaces. */
export function toGrantBody({ role, workspaceIds }: Grant): Grant {
  return { role, workspaceIds: needsWorkspaces(role) ? workspaceIds : [] }
}

export function isComplete({ role, workspaceIds }: Grant): boolean {
  return !needsWorkspaces(role) || workspaceIds.length > 0
}
