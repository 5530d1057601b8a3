import { SimpleGrid, Stack } from '@mantine/core'
import { PageHeader } from '../../../parts/PageHeader.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { SecondFactorSection } from '../../second-factor/SecondFactorSection.tsx'
import { roleLabel } from '../member/members.ts'
import { NoticeMailSection } from './NoticeMailSection.tsx'
import { PasswordForm } from './PasswordForm.tsx'
import { SessionList } from './SessionList.tsx'

/** The member's own sessions, password, second factor and mail. */
export function AccountPage() {
  const { session } = useSession()
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
          <PasswordForm />
          <NoticeMailSection />
        </Stack>
      </SimpleGrid>
    </>
  )
}
