import { Group, Select, Skeleton, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { EmptyState } from '../../../parts/message/EmptyState.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { AccessResult } from './AccessResult.tsx'
import { type Key, useKeys } from '../keys.ts'
import { type Operation, OPERATION_GROUPS, operationText } from './operations.ts'
import { useKeysWorkspace } from '../use-keys-workspace.ts'

const route = getRouteApi('/shell/app/keys')

/** Checks whether a key would be allowed to make a call, without making it. */
export function AccessCheck() {
  const workspace = useKeysWorkspace()
  const { pages, items: keys } = useKeys(workspace?.id ?? null)
  if (pages.isPending) return <Skeleton height={60} radius="sm" />
  if (pages.error) return <ErrorBox error={pages.error} onRetry={pages.refetch} />
  if (keys.length === 0) return <EmptyState icon="key" title="No keys yet" />
  return <CheckForm keys={keys} />
}

function CheckForm({ keys }: { keys: readonly Key[] }) {
  const { session } = useSession()
  const { key: asked } = route.useSearch()
  const navigate = route.useNavigate()
  const [operation, setOperation] = useState<Operation>('createEvent')
  const [address, setAddress] = useState(session.address)
  const chosen = keys.find(({ id }) => id === asked) ?? keys[0]
  const check = useMutation({
    mutationFn: (keyId: string) =>
      unwrap(
        client.POST('/dashboard/keys/preflight', {
          body: { keyId, operation, ...(address.trim() !== '' && { address: address.trim() }) },
        }),
      ),
  })
  return (
    <>
      <Text size="sm" className="soft" maw={640} mb="sm">
        Check whether a key can call an operation. Runs the same checks as a call, in the same
        order, without making the call.
      </Text>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (chosen) check.mutate(chosen.id)
        }}
      >
        <Group align="flex-end" gap="sm">
          <KeySelect
            keys={keys}
            value={chosen?.id ?? null}
            onChange={(id) => {
              check.reset()
              if (id !== null) void navigate({ search: { tab: 'check', key: id }, replace: true })
            }}
          />
          <OperationSelect
            value={operation}
            onChange={(value) => {
              check.reset()
              if (value !== null) setOperation(value)
            }}
          />
          <TextInput
            label={address === session.address ? 'IP address (yours)' : 'IP address'}
            w={190}
            value={address}
            autoComplete="off"
            onChange={(event) => {
              check.reset()
              setAddress(event.currentTarget.value)
            }}
          />
          <BusyButton type="submit" isBusy={check.isPending}>
            Check access
          </BusyButton>
        </Group>
      </form>
      <ErrorBox error={check.error} />
      {check.data && chosen && (
        <AccessResult verdict={check.data} keyName={chosen.name} what={operationText(operation)} />
      )}
    </>
  )
}

function KeySelect({
  keys,
  value,
  onChange,
}: {
  keys: readonly Key[]
  value: string | null
  onChange: (id: string | null) => void
}) {
  return (
    <Select
      label="Key"
      w={320}
      allowDeselect={false}
      searchable={keys.length > 8}
      data={keys.map(({ id, name, prefix }) => ({ value: id, label: `${name} (${prefix}…)` }))}
      value={value}
      onChange={onChange}
    />
  )
}

function OperationSelect({
  value,
  onChange,
}: {
  value: Operation
  onChange: (operation: Operation | null) => void
}) {
  return (
    <Select
      label="Operation"
      w={260}
      allowDeselect={false}
      searchable
      data={OPERATION_GROUPS}
      value={value}
      onChange={onChange}
      nothingFoundMessage="No matching operations"
    />
  )
}
