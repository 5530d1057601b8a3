import { Button, Group, Radio, Select, Stack, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { SecretDialog } from '../../parts/dialog/SecretDialog.tsx'
import { WorkspaceSelect } from '../../parts/WorkspaceSelect.tsx'
import { useSession } from '../../api/session-context.tsx'
import { EXPIRY_PRESETS, type ExpiryPreset, expiryOf } from './expiry.ts'
import { type KeyScope, refreshKeys } from './keys.ts'
import { NewKeyBox } from './NewKeyBox.tsx'
import { PermissionFields } from './PermissionFields.tsx'
import { NO_LIMIT, permissionsFor } from './permissions.ts'

type CreateProps = { isOpen: boolean; onClose: () => void }

export function CreateKey({ isOpen, onClose }: CreateProps) {
  return (
    <SecretDialog isOpen={isOpen} onClose={onClose} title="Create key">
      <CreateForm onClose={onClose} />
    </SecretDialog>
  )
}

function CreateForm({ onClose }: Pick<CreateProps, 'onClose'>) {
  const { workspace } = useSession()
  const [name, setName] = useState('')
  const [scope, setScope] = useState<KeyScope>('WORKSPACE')
  const [workspaceId, setWorkspaceId] = useState(workspace?.id ?? null)
  const [limit, setLimit] = useState(NO_LIMIT)
  const [expiry, setExpiry] = useState<ExpiryPreset>('90')
  const permissions = permissionsFor(scope, limit)
  const lacksWorkspace = scope === 'WORKSPACE' && workspaceId === null
  const create = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/keys', {
          body: {
            name: name.trim(),
            scope,
            ...(scope === 'WORKSPACE' && workspaceId !== null && { workspaceId }),
            ...(permissions !== null && { permissions }),
            expiresAt: expiryOf(expiry, Date.now()),
          },
        }),
      ),
    onSuccess: refreshKeys,
  })
  if (create.data) return <NewKeyBox made={create.data} onDone={onClose} />
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        create.mutate()
      }}
    >
      <Stack>
        <NameInput name={name} onChange={setName} />
        <ScopeChoice
          scope={scope}
          onChange={(chosen) => {
            setScope(chosen)
            if (chosen === 'COMPANY' && limit.preset === 'write') setLimit(NO_LIMIT)
          }}
        />
        {scope === 'WORKSPACE' && <WorkspaceSelect value={workspaceId} onChange={setWorkspaceId} />}
        <PermissionFields scope={scope} limit={limit} onChange={setLimit} />
        <ExpirySelect value={expiry} onChange={setExpiry} />
        <ErrorBox error={create.error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <BusyButton
            type="submit"
            isBusy={create.isPending}
            disabled={name.trim() === '' || permissions?.length === 0 || lacksWorkspace}
          >
            Create key
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}

function NameInput({ name, onChange }: { name: string; onChange: (name: string) => void }) {
  return (
    <TextInput
      label="Name"
      description="Name the program that uses the key, so that you know what is affected when you revoke it."
      placeholder="billing service"
      required
      maxLength={200}
      autoComplete="off"
      data-autofocus
      value={name}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  )
}

function ScopeChoice({
  scope,
  onChange,
}: {
  scope: KeyScope
  onChange: (scope: KeyScope) => void
}) {
  return (
    <Radio.Group
      label="Scope"
      value={scope}
      onChange={(value) => onChange(value === 'COMPANY' ? 'COMPANY' : 'WORKSPACE')}
    >
      <Stack gap="xs" mt={6}>
        <Radio
          value="WORKSPACE"
          label="Workspace"
          description="Sends, reads and exports the events of one workspace."
        />
        <Radio
          value="COMPANY"
          label="Company"
          description="Reads and exports events of all workspaces, and manages webhooks. Can’t send events."
        />
      </Stack>
    </Radio.Group>
  )
}

function ExpirySelect({
  value,
  onChange,
}: {
  value: ExpiryPreset
  onChange: (expiry: ExpiryPreset) => void
}) {
  return (
    <Select
      label="Expires"
      allowDeselect={false}
      data={EXPIRY_PRESETS}
      value={value}
      onChange={(chosen) => chosen !== null && onChange(chosen)}
      description="If you rotate the key, the new one gets the same lifetime."
    />
  )
}
