import type { Role } from './member/user-store.ts'

const ALL_ROLES = ['OWNER', 'ADMIN', 'ANALYST', 'VIEWER'] as const
const ANALYSTS = ['OWNER', 'ADMIN', 'ANALYST'] as const
const ADMINS = ['OWNER', 'ADMIN'] as const
const OWNERS = ['OWNER'] as const

/**
 * Which roles have which permission in the dashboard. Each route names its permission. It applies to the
 * workspaces that the member has access to.
 */
export const POLICY = {
  /**
   * The member's own session and second factor: all that a member can use until they have the second factor
   * that their company requires.
   */
  'self.enroll': ALL_ROLES,
  /** The member's own sessions, password and profile. */
  'self.manage': ALL_ROLES,
  'events.read': ALL_ROLES,
  'views.manage': ALL_ROLES,
  'exports.read': ALL_ROLES,
  'exports.create': ANALYSTS,
  'templates.read': ALL_ROLES,
  'templates.manage': ANALYSTS,
  'integrity.read': ALL_ROLES,
  'integrity.verify': ANALYSTS,
  'webhooks.read': ALL_ROLES,
  'webhooks.manage': ADMINS,
  'keys.read': ADMINS,
  'keys.manage': ADMINS,
  /** Notices about what the member can see otherwise. */
  'notices.read': ALL_ROLES,
  'company.read': ALL_ROLES,
  'company.manage': ADMINS,
  'usage.read': ALL_ROLES,
  'members.read': ADMINS,
  'members.manage': ADMINS,
  /** Adding and removing owners. */
  'owners.manage': OWNERS,
  /** How members have to sign in. */
  'security.manage': OWNERS,
  'activity.read': ADMINS,
} as const satisfies Record<string, readonly Role[]>

export type Permission = keyof typeof POLICY

export const PERMISSIONS = Object.keys(POLICY).filter(isPermission)

export function isAllowed(role: Role, permission: Permission): boolean {
  const roles: readonly Role[] = POLICY[permission]
  return roles.includes(role)
}

function isPermission(text: string): text is Permission {
  return text in POLICY
}
