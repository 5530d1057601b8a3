import { Button, Group, Modal, Stack } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import { SESSION_KEY } from '../../../api/session.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { isComplete, toGrantBody } from './grant.ts'
import { type Grant, GrantFields } from './GrantFields.tsx'
import { type Member, refreshMembers } from './members.ts'

type ChangeProps = { member: Member; isOpen: boolean; onClose: () => void }

export function ChangeMember(props: ChangeProps) {
  const { isOpen, onClose, member } = props
  return (
    <Modal opened={isOpen} onClose={onClose} title={`Change access for ${member.email}`} centered>
      {isOpen && <ChangeForm {...props} />}
    </Modal>
  )
}

function ChangeForm({ member: { id, role, workspaceIds }, onClose }: ChangeProps) {
  const [grant, setGrant] = useState<Grant>({ role, workspaceIds: workspaceIds ?? [] })
  const change = useMutation({
    mutationFn: () =>
      unwrap(
        client.PATCH('/dashboard/members/{userId}', {
          params: { path: { userId: id } },
          body: toGrantBody(grant),
        }),
      ),
    onSuccess: async () => {
      onClose()
      await refreshMembers()
      // The member can have changed their own role.
      await queryClient.invalidateQueries({ queryKey: SESSION_KEY })
    },
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        change.mutate()
      }}
    >
      <Stack>
        <GrantFields grant={grant} onChange={setGrant} />
        <ErrorBox error={change.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <BusyButton type="submit" isBusy={change.isPending} disabled={!isComplete(grant)}>
            Save changes
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}
