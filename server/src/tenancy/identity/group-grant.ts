import type { WorkspaceId } from '../../platform/id.ts'
import type { GroupState } from './identity-store.ts'
import { hasCompanyAccess, type MemberGrant } from '../member/member-store.ts'
import { ROLES } from '../member/user-store.ts'

/** What several groups grant together: the highest role, on the workspaces of all groups that grant it. */
export function combinedGrant(grants: readonly MemberGrant[]): MemberGrant | null {
  const [first, ...others] = grants.toSorted((a, b) => rankOf(a) - rankOf(b))
  if (!first || first.workspaceIds === null) return first ?? null
  const same = [first, ...others.filter(({ role }) => role === first.role)]
  const ids = new Set<WorkspaceId>(same.flatMap(({ workspaceIds }) => workspaceIds ?? []))
  return { role: first.role, workspaceIds: [...ids] }
}

/** The role of a member after a sign-in, and what to remember for the next one. */
type GroupOutcome = {
  /** Null if the member has no role left. */
  grant: MemberGrant | null
  state: GroupState
}

/**
 * Decides the role of a member at a sign-in. Groups never lower a role that the member has by other means, and
 * a member who leaves the groups loses what they granted. A role that was changed in the dashboard since the
 * last sign-in is the member's own role from then on.
 */
export function applyGroups(
  current: MemberGrant,
  { granted, own }: GroupState,
  desired: MemberGrant | null,
): GroupOutcome {
  const isFromGroups = granted !== null && isSameGrant(current, granted)
  const base = isFromGroups ? own : current
  if (!desired) return { grant: base, state: { granted: null, own: base } }
  if (!base) return { grant: desired, state: { granted: desired, own: null } }
  const combined = combinedGrant([base, desired])
  const isOwn = combined === null || isSameGrant(combined, base)
  return { grant: combined ?? base, state: { granted: isOwn ? null : combined, own: base } }
}

export function isSameGrant(a: MemberGrant, b: MemberGrant): boolean {
  if (a.role !== b.role) return false
  if (hasCompanyAccess(a.role)) return true
  const ids = new Set(a.workspaceIds)
  return (
    ids.size === new Set(b.workspaceIds).size && (b.workspaceIds ?? []).every((id) => ids.has(id))
  )
}

/** The highest role is first. */
function rankOf({ role }: MemberGrant): number {
  return ROLES.indexOf(role)
}
