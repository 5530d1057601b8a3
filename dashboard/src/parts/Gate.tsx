import type { ComponentProps } from 'react'
import type { Permission } from '../api/session.ts'
import { useSigned } from '../shell/session-context.tsx'
import { Refused } from './Refused.tsx'

/** Disables a control that the member's role doesn't allow, and shows the reason instead of hiding it. */
export function Gate({
  permission,
  what,
  otherwise = null,
  children,
}: {
  permission: Permission
  /** What is not allowed, for example "create keys". */
  what: string
  /** Why the action is unavailable even to members with the permission. */
  otherwise?: string | null
  children: ComponentProps<typeof Refused>['children']
}) {
  return <Refused reason={useRefusal(permission, what) ?? otherwise}>{children}</Refused>
}

/** Why the action isn't allowed. Null if it is. */
export function useRefusal(permission: Permission, what: string): string | null {
  const { may, session } = useSigned()
  return may(permission) ? null : `Your role (${session.user.role.toLowerCase()}) can’t ${what}.`
}
