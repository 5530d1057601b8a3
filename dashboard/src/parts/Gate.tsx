import { Tooltip } from '@mantine/core'
import type { ReactElement } from 'react'
import type { Permission } from '../api/session.ts'
import { useSigned } from '../shell/session-context.tsx'

/** What a role may not do is there, disabled, with the reason. `children` takes whether it is. */
export function Gate({
  permission,
  what,
  children,
}: {
  permission: Permission
  /** "create keys": what is not allowed. */
  what: string
  children: (isDisabled: boolean) => ReactElement
}) {
  const { may, session } = useSigned()
  if (may(permission)) return children(false)
  return (
    <Tooltip label={`Your role, ${session.user.role.toLowerCase()}, may not ${what}.`}>
      <span>{children(true)}</span>
    </Tooltip>
  )
}
