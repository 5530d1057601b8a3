import { ActionIcon, Menu } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { ConfirmDialog } from '../../parts/dialog/ConfirmDialog.tsx'
import { useDeniedReason } from '../../parts/Gate.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { MenuAction } from '../../parts/MenuAction.tsx'
import { NameDialog } from '../../parts/dialog/NameDialog.tsx'
import { isActiveKey, type Key, refreshKeys, STATUS_LABELS } from './keys.ts'

const route = getRouteApi('/shell/app/keys')
type Dialog = 'rename' | 'revoke'

/** The actions for a key. A key that has ended can only be checked or renamed. */
export function KeyActions({ apiKey, onRotate }: { apiKey: Key; onRotate: () => void }) {
  const navigate = route.useNavigate()
  const [dialog, setDialog] = useState<Dialog | null>(null)
  const deniedReason = useDeniedReason('keys.manage', 'change keys')
  const close = () => setDialog(null)
  return (
    <>
      <Menu position="bottom-end" width={190}>
        <Menu.Target>
          <ActionIcon variant="subtle" color="gray" aria-label={`Actions for ${apiKey.name}`}>
            <Icon name="more" size={20} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => void navigate({ search: { tab: 'check', key: apiKey.id } })}>
            Check access
          </Menu.Item>
          <MenuAction reason={deniedReason} onClick={() => setDialog('rename')}>
            Rename key
          </MenuAction>
          <MenuAction reason={deniedReason ?? rotationDeniedReason(apiKey)} onClick={onRotate}>
            Rotate key
          </MenuAction>
          <MenuAction
            reason={deniedReason ?? (isActiveKey(apiKey) ? null : 'This key has already ended.')}
            isDanger
            onClick={() => setDialog('revoke')}
          >
            Revoke key
          </MenuAction>
        </Menu.Dropdown>
      </Menu>
      <RenameKey apiKey={apiKey} isOpen={dialog === 'rename'} onClose={close} />
      <RevokeKey apiKey={apiKey} isOpen={dialog === 'revoke'} onClose={close} />
    </>
  )
}

function rotationDeniedReason({ status }: Key): string | null {
  if (status === 'ROTATING') return 'This key is already being rotated.'
  return status === 'REVOKED' ? 'This key is revoked. Create a new one.' : null
}

type DialogProps = { apiKey: Key; isOpen: boolean; onClose: () => void }

function RenameKey({ apiKey: { id, name }, isOpen, onClose }: DialogProps) {
  return (
    <NameDialog
      isOpen={isOpen}
      onClose={onClose}
      title="Rename key"
      label="Name"
      description="Only shown in the dashboard. Programs that use the key are not affected."
      name={name}
      action="Rename key"
      onSave={async (typed) => {
        const params = { path: { keyId: id } }
        await unwrap(client.PATCH('/dashboard/keys/{keyId}', { params, body: { name: typed } }))
        await refreshKeys()
      }}
    />
  )
}

function RevokeKey({ apiKey: { id, name, prefix, status }, isOpen, onClose }: DialogProps) {
  const revoke = useMutation({
    mutationFn: () =>
      unwrap(client.POST('/dashboard/keys/{keyId}/revoke', { params: { path: { keyId: id } } })),
    onSuccess: async () => {
      onClose()
      await refreshKeys()
    },
  })
  return (
    <ConfirmDialog
      isOpen={isOpen}
      onClose={onClose}
      title="Revoke key"
      consequence={`This permanently revokes ${prefix}… (${STATUS_LABELS[status].toLowerCase()}). Within two seconds, every call with it is rejected. ${status === 'ROTATING' ? 'The new key keeps working.' : 'To replace it without downtime, rotate it instead.'}`}
      name={name}
      action="Revoke key"
      isBusy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
    />
  )
}
