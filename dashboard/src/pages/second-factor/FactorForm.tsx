import { Button, Group, PasswordInput, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { useSession } from '../../api/session-context.tsx'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { useIdentity } from '../sign-in/provider.ts'
import { fieldError, isFormError } from './second-factor.ts'

type FactorProof = { currentPassword?: string; code: string }

/** Confirms a change of the second factor with the password and a code. */
export function FactorForm<T>({
  consequence,
  action,
  isDanger = false,
  send,
  onDone,
  onClose,
}: {
  consequence: string
  action: string
  isDanger?: boolean
  send: (proof: FactorProof) => Promise<T>
  onDone: (result: T) => void
  onClose: () => void
}) {
  const { session } = useSession()
  const [proof, setProof] = useState({ currentPassword: '', code: '' })
  const hasPassword = useIdentity().data?.hasPassword !== false
  const change = useMutation({
    mutationFn: () => send(hasPassword ? proof : { code: proof.code }),
    onSuccess: onDone,
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        change.mutate()
      }}
    >
      <Stack>
        <Text size="sm">{consequence}</Text>
        <input type="hidden" autoComplete="username" value={session.user.email} readOnly />
        {hasPassword && (
          <PasswordInput
            label="Password"
            withAsterisk={false}
            autoComplete="current-password"
            required
            data-autofocus
            error={fieldError(change.error, '/currentPassword')}
            value={proof.currentPassword}
            onChange={({ currentTarget: { value } }) =>
              setProof({ ...proof, currentPassword: value })
            }
          />
        )}
        <TextInput
          label="Code or recovery code"
          withAsterisk={false}
          autoComplete="one-time-code"
          required
          maxLength={64}
          error={fieldError(change.error, '/code')}
          value={proof.code}
          onChange={({ currentTarget: { value } }) => setProof({ ...proof, code: value })}
        />
        {isFormError(change.error) && <ErrorBox error={change.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Go back
          </Button>
          <BusyButton type="submit" isBusy={change.isPending} {...(isDanger && { color: 'red' })}>
            {action}
          </BusyButton>
        </Group>
      </Stack>
    </form>
  )
}
