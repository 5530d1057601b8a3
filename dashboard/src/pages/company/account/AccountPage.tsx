import { SimpleGrid, Stack } from '@mantine/core'
import { PageHeader } from '../../../parts/PageHeader.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { SecondFactorSection } from '../../second-factor/SecondFactorSection.tsx'
import { useIdentity } from '../../sign-in/provider.ts'
import { roleLabel } from '../member/members.ts'
import { IdentitySection } from './IdentitySection.tsx'
import { NoPassword } from './NoPassword.tsx'
import { NoticeMailSection } from './NoticeMailSection.tsx'
import { PasswordForm } from './PasswordForm.tsx'
import { SessionList } from './SessionList.tsx'

/** The member's own sessions, password, sign-in, second factor and mail. */
export function AccountPage() {
  const { session } = useSession()
  const identity = useIdentity()
  const { email, role } = session.user
  return (
    <>
      <PageHeader
        title="Account"
        description={`${email}, ${roleLabel(role).toLowerCase()} of ${session.company.name}`}
      />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
        <Stack gap="xl">
          <SessionList />
          <SecondFactorSection />
        </Stack>
        <Stack gap="xl">
          {identity.data?.hasPassword === false ? <NoPassword /> : <PasswordForm />}
          <IdentitySection />
          <NoticeMailSection />
        </Stack>
      </SimpleGrid>
    </>
  )
}
