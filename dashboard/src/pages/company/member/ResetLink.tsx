import { Button, Group, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { SecretBox } from '../../../parts/dialog/SecretBox.tsx'
import { SecretDialog } from '../../../parts/dialog/SecretDialog.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import type { Member } from './members.ts'

type ResetProps = { member: Member; isOpen: boolean; onClose: () => void }

/** Creates a password reset link for a member who forgot their password. */
export function ResetLink(props: ResetProps) {
  const { member, isOpen, onClose } = props
  return (
    <SecretDialog isOpen={isOpen} onClose={onClose} title={`Reset password for ${member.email}`}>
      <ResetForm {...props} />
    </SecretDialog>
  )
}

function ResetForm({ member: { id, email }, onClose }: ResetProps) {
  const make = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/members/{userId}/reset-link', { params: { path: { userId: id } } }),
      ),
  })
  if (make.data) {
    return (
      <Stack>
        <SecretBox label={`Reset link for ${email}`} secret={make.data.link}>
          <Text size="sm">
            It works once, until <TimeText at={make.data.expiresAt} style="clock" />. Send it over a
            private channel: anyone who opens it can set the password.
          </Text>
        </SecretBox>
        <Group justify="flex-end">
          <Button onClick={onClose}>I’ve copied it</Button>
        </Group>
      </Stack>
    )
  }
  return (
    <Stack>
      <Text size="sm">
        This creates a link that works once and expires in an hour. The current password works until
        the link is used. Using the link ends all sessions of {email}.
      </Text>
      <ErrorBox error={make.error} />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose}>
          Cancel
        </Button>
        <BusyButton onClick={() => make.mutate()} isBusy={make.isPending}>
          Create reset link
        </BusyButton>
      </Group>
    </Stack>
  )
}
