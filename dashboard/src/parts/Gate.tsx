import type { ComponentProps } from 'react'
import type { Permission } from '../api/session.ts'
import { useSigned } from '../shell/session-context.tsx'
import { Refused } from './Refused.tsx'

/** What a role may not do is there, disabled, with the reason. */
export function Gate({
  permission,
  what,
  otherwise = null,
  children,
}: {
  permission: Permission
  /** "create keys": what is not allowed. */
  what: string
  /** Why it cannot be done even by whoever may. */
  otherwise?: string | null
  children: ComponentProps<typeof Refused>['children']
}) {
  return <Refused reason={useRefusal(permission, what) ?? otherwise}>{children}</Refused>
}

/** Null for whoever may. */
export function useRefusal(permission: Permission, what: string): string | null {
  const { may, session } = useSigned()
  return may(permission) ? null : `Your role, ${session.user.role.toLowerCase()}, may not ${what}.`
}
