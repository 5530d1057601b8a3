import { Text } from '@mantine/core'
import { useSession } from '../../api/session-context.tsx'
import { EmptyState } from './EmptyState.tsx'

/** Shown if a link leads to a page that the member's role doesn't allow. */
export function NoAccess({ what }: { what: string }) {
  const { session } = useSession()
  return (
    <EmptyState icon="shield" title={`Your role can’t view ${what}`}>
      <Text size="sm" className="soft" ta="center" maw={440}>
        You are {ROLE_NAMES[session.user.role]} of {session.company.name}. Only owners and admins
        can view this page. To get access, ask one of them to change your role in Members.
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
