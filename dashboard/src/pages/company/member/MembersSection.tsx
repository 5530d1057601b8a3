import { Button, Skeleton, Stack, Title } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { Gate } from '../../../parts/Gate.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { NoAccess } from '../../../parts/message/NoAccess.tsx'
import { PageHeader } from '../../../parts/PageHeader.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { InvitationList } from './InvitationList.tsx'
import { InviteDialog } from './InviteDialog.tsx'
import { MemberTable } from './MemberTable.tsx'
import { useMembers } from './members.ts'
import { SignInRules } from './SignInRules.tsx'

export function MembersSection() {
  const { hasPermission } = useSession()
  if (hasPermission('members.read')) return <Members />
  return (
    <>
      <PageHeader title="Members" />
      <NoAccess what="members" />
    </>
  )
}

function Members() {
  const { session } = useSession()
  const members = useMembers()
  const [isInviting, inviting] = useDisclosure(false)
  return (
    <>
      <PageHeader
        title="Members"
        description={`Who can use the dashboard of ${session.company.name}. Changes take effect on the member’s next request.`}
      >
        <Gate permission="members.manage" action="invite members">
          <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={inviting.open}>
            Invite member
          </Button>
        </Gate>
      </PageHeader>
      <ErrorBox error={members.error} onRetry={members.refetch} />
      {members.isPending && (
        <Stack gap={6} role="status" aria-label="Loading members">
          {[1, 2, 3].map((line) => (
            <Skeleton height={44} radius="sm" key={line} />
          ))}
        </Stack>
      )}
      {members.data && <SignInRules members={members.data.members} />}
      {members.data && <MemberTable members={members.data.members} />}
      <Title order={2} mt="xl" mb="xs">
        Open invitations
      </Title>
      <InvitationList />
      <InviteDialog isOpen={isInviting} onClose={inviting.close} />
    </>
  )
}
