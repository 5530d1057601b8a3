import { Button, Group, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { SecretBox } from '../../../parts/dialog/SecretBox.tsx'
import { SecretDialog } from '../../../parts/dialog/SecretDialog.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { isComplete, toGrantBody } from './grant.ts'
import { type Grant, GrantFields } from './GrantFields.tsx'
import { refreshMembers } from './members.ts'

type InviteProps = { isOpen: boolean; onClose: () => void }

export function InviteDialog({ isOpen, onClose }: InviteProps) {
  return (
    <SecretDialog isOpen={isOpen} onClose={onClose} title="Invite member">
      <InviteForm onClose={onClose} />
    </SecretDialog>
  )
}

function InviteForm({ onClose }: Pick<InviteProps, 'onClose'>) {
  const { session } = useSession()
  const customers = session.workspaces.filter(({ kind }) => kind === 'CUSTOMER')
  const [email, setEmail] = useState('')
  const [grant, setGrant] = useState<Grant>({
    role: 'ANALYST',
    // If there is only one workspace, it is preselected.
    workspaceIds: customers.length === 1 ? customers.map(({ id }) => id) : [],
  })
  const invite = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/invitations', {
          body: { email: email.trim(), ...toGrantBody(grant) },
        }),
      ),
    onSuccess: refreshMembers,
  })
  if (invite.data) return <InvitationLink made={invite.data} email={email} onDone={onClose} />
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        invite.mutate()
      }}
    >
      <Stack>
        <TextInput
          label="Email"
          type="email"
          required
          autoComplete="off"
          data-autofocus
          value={email}
          onChange={(event) => setEmail(event.currentTarget.value)}
        />
        <GrantFields grant={grant} onChange={setGrant} />
        <ErrorBox error={invite.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <BusyButton type="submit" isBusy={invite.isPending} disabled={!isComplete(grant)}>
            Invite member
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}

function InvitationLink({
  made: { link, expiresAt, isMailed },
  email,
  onDone,
}: {
  made: { link: string; expiresAt: string; isMailed: boolean }
  email: string
  onDone: () => void
}) {
  return (
    <Stack>
      <SecretBox label={`Invitation for ${email}`} secret={link}>
        <Text size="sm">
          {isMailed
            ? 'The link was also sent by email.'
            : 'Email is not configured: send the link over a private channel.'}{' '}
          It works once, until <TimeText at={expiresAt} style="clock" />.
        </Text>
      </SecretBox>
      <Group justify="flex-end">
        <Button onClick={onDone}>{isMailed ? 'Done' : 'I’ve copied it'}</Button>
      </Group>
    </Stack>
  )
}
