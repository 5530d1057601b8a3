import type { Role } from './user-store.ts'

const EVERYBODY = ['OWNER', 'ADMIN', 'ANALYST', 'VIEWER'] as const
const ANALYSTS = ['OWNER', 'ADMIN', 'ANALYST'] as const
const ADMINS = ['OWNER', 'ADMIN'] as const
const OWNERS = ['OWNER'] as const

/**
 * What may be done in the dashboard, and by whom: the one table. A route names its permission; on
 * which workspaces it may be used follows from the member's own.
 */
export const POLICY = {
  /** One's own session, password and profile. */
  'self.manage': EVERYBODY,
  'events.read': EVERYBODY,
  'views.manage': EVERYBODY,
  'exports.read': EVERYBODY,
  'exports.create': ANALYSTS,
  'templates.read': EVERYBODY,
  'templates.manage': ANALYSTS,
  'integrity.read': EVERYBODY,
  'integrity.verify': ANALYSTS,
  'webhooks.read': EVERYBODY,
  'webhooks.manage': ADMINS,
  'keys.read': ADMINS,
  'keys.manage': ADMINS,
  'company.read': EVERYBODY,
  'company.manage': ADMINS,
  'usage.read': EVERYBODY,
  'members.read': ADMINS,
  'members.manage': ADMINS,
  /** Making and unmaking owners. */
  'owners.manage': OWNERS,
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
