import { Text } from '@mantine/core'
import { useSigned } from '../shell/session-context.tsx'
import { EmptyState } from './EmptyState.tsx'

/** Shown if a link leads to a page that the member's role doesn't allow. */
export function NoAccess({ what }: { what: string }) {
  const { session } = useSigned()
  return (
    <EmptyState icon="shield" title={`Your role may not see ${what}`}>
      <Text size="sm" className="soft" ta="center" maw={440}>
        You are {ROLE_NAMES[session.user.role]} of {session.company.name}. Its owners and admins see
        this page; one of them can give you another role under Company, Members.
      </Text>
    </EmptyState>
  )
}

const ROLE_NAMES = {
  OWNER: 'an owner',
  ADMIN: 'an admin',
  ANALYST: 'an analyst',
  VIEWER: 'a viewer',
} as const
