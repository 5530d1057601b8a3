import type { ComponentProps } from 'react'
import type { Permission } from '../api/session.ts'
import { useSession } from '../api/session-context.tsx'
import { DisabledReason } from './DisabledReason.tsx'

/** Disables a control that the member's role doesn't allow, and shows the reason instead of hiding it. */
export function Gate({
  permission,
  action,
  otherReason = null,
  children,
}: {
  permission: Permission
  /** What is not allowed, for example "create keys". */
  action: string
  /** Why the action is unavailable even to members with the permission. */
  otherReason?: string | null
  children: ComponentProps<typeof DisabledReason>['children']
}) {
  return (
    <DisabledReason reason={useDeniedReason(permission, action) ?? otherReason}>
      {children}
    </DisabledReason>
  )
}

/** Why the action isn't allowed. Null if it is. */
export function useDeniedReason(permission: Permission, action: string): string | null {
  const { hasPermission, session } = useSession()
  return hasPermission(permission)
    ? null
    : `Your role (${session.user.role.toLowerCase()}) can’t ${action}.`
}
