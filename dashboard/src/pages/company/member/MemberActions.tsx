import { ActionIcon, Menu } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { useDeniedReason } from '../../../parts/Gate.tsx'
import { Icon } from '../../../parts/Icon.tsx'
import { MenuAction } from '../../../parts/MenuAction.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { ChangeMember } from './ChangeMember.tsx'
import { type Member, refreshMembers } from './members.ts'
import { ResetLink } from './ResetLink.tsx'
import { ResetSecondFactor } from './ResetSecondFactor.tsx'

const LAST_OWNER = 'A company needs at least one owner. Make another member an owner first.'
type Dialog = 'change' | 'reset' | 'factor' | 'remove'

/** The actions for a member. Disabled menu items show the reason. */
export function MemberActions({ member, isLastOwner }: { member: Member; isLastOwner: boolean }) {
  const { session, hasPermission } = useSession()
  const navigate = useNavigate()
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const own = session.workspaces.find(({ kind }) => kind === 'SYSTEM')
  const isSelf = member.id === session.user.id
  const isForbidden = member.role === 'OWNER' && !hasPermission('owners.manage')
  const roleDeniedReason = useDeniedReason('members.manage', 'change members')
  const deniedReason =
    roleDeniedReason ?? (isForbidden ? 'Only owners can change or remove an owner.' : null)
  const lastOwner = isLastOwner ? LAST_OWNER : null
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
          <MenuAction reason={deniedReason ?? lastOwner} onClick={() => setDialog('change')}>
            Change role and workspaces
          </MenuAction>
          <MenuAction
            reason={deniedReason ?? (isSelf ? 'To change your own password, go to Account.' : null)}
            onClick={() => setDialog('reset')}
          >
            Create reset link
          </MenuAction>
          <MenuAction
            reason={deniedReason ?? factorReason(member, isSelf)}
            onClick={() => setDialog('factor')}
          >
            Reset second factor
          </MenuAction>
          <MenuAction
            reason={deniedReason ?? lastOwner ?? (isSelf ? 'You can’t remove yourself.' : null)}
            isDanger
            onClick={() => setDialog('remove')}
          >
            Remove member
          </MenuAction>
        </Menu.Dropdown>
      </Menu>
      <ChangeMember member={member} isOpen={dialog === 'change'} onClose={close} />
      <ResetLink member={member} isOpen={dialog === 'reset'} onClose={close} />
      <ResetSecondFactor member={member} isOpen={dialog === 'factor'} onClose={close} />
      <RemoveMember member={member} isOpen={dialog === 'remove'} onClose={close} />
    </>
  )
}

/** Why the second factor can't be reset. Null if it can. */
function factorReason({ hasSecondFactor }: Member, isSelf: boolean): string | null {
  if (isSelf) return 'To change your own second factor, go to Account.'
  return hasSecondFactor ? null : 'This member has no second factor.'
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
      title="Remove member"
      consequence={`${email} is signed out immediately and needs a new invitation to return. Their private views are deleted. Shared views and keys are kept.`}
      name={email}
      action="Remove member"
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
    />
  )
}
