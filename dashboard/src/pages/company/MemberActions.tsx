import { ActionIcon, Menu, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { useSigned } from '../../shell/session-context.tsx'
import { ChangeMember } from './ChangeMember.tsx'
import { type Member, refreshMembers } from './members.ts'
import { ResetLink } from './ResetLink.tsx'

type Dialog = 'change' | 'reset' | 'remove'

/** What can be done about a member; of what cannot, the menu says why. */
export function MemberActions({ member, isLastOwner }: { member: Member; isLastOwner: boolean }) {
  const { session, may } = useSigned()
  const navigate = useNavigate()
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const own = session.workspaces.find(({ kind }) => kind === 'SYSTEM')
  const isSelf = member.id === session.user.id
  const isBeyond = member.role === 'OWNER' && !may('owners.manage')
  const mayManage = may('members.manage') && !isBeyond
  const reason = reasonOf({ isSelf, isBeyond, isLastOwner })
  const close = () => setDialog(null)
  return (
    <>
      <Menu position="bottom-end" width={230}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${member.email}`}>
            <Icon name="more" size={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          {own && (
            <Menu.Item
              onClick={() =>
                void navigate({
                  to: '/app/explorer',
                  search: { workspaceId: own.id, actorEmail: member.email },
                })
              }
            >
              Show activity
            </Menu.Item>
          )}
          <Menu.Item onClick={() => setDialog('change')} disabled={!mayManage || isLastOwner}>
            Change role and workspaces
          </Menu.Item>
          <Menu.Item onClick={() => setDialog('reset')} disabled={!mayManage || isSelf}>
            Make a password link
          </Menu.Item>
          <Menu.Item
            color="red"
            onClick={() => setDialog('remove')}
            disabled={!mayManage || isSelf || isLastOwner}
          >
            Remove
          </Menu.Item>
          {reason !== null && (
            <Text size="xs" className="soft" p="xs">
              {reason}
            </Text>
          )}
        </Menu.Dropdown>
      </Menu>
      <ChangeMember member={member} isOpen={dialog === 'change'} onClose={close} />
      <ResetLink member={member} isOpen={dialog === 'reset'} onClose={close} />
      <RemoveMember member={member} isOpen={dialog === 'remove'} onClose={close} />
    </>
  )
}

function reasonOf(about: {
  isSelf: boolean
  isBeyond: boolean
  isLastOwner: boolean
}): string | null {
  if (about.isBeyond) return 'Only an owner changes or removes an owner.'
  const reasons = [
    about.isLastOwner && 'The last owner stays one: make somebody else an owner first.',
    about.isSelf && 'Nobody removes himself; your own password is under Account.',
  ].filter((reason) => reason !== false)
  return reasons.length === 0 ? null : reasons.join(' ')
}

function RemoveMember({
  member: { id, email },
  isOpen,
  onClose,
}: {
  member: Member
  isOpen: boolean
  onClose: () => void
}) {
  const remove = useMutation({
    mutationFn: () =>
      unwrap(client.DELETE('/dashboard/members/{userId}', { params: { path: { userId: id } } })),
    onSuccess: async () => {
      onClose()
      await refreshMembers()
    },
  })
  return (
    <ConfirmDialog
      isOpen={isOpen}
      onClose={onClose}
      title="Remove a member"
      consequence={`${email} is signed out at once and cannot come back without an invitation. Private views go as well; shared ones stay, and keys work on.`}
      name={email}
      action="Remove"
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
    />
  )
}
