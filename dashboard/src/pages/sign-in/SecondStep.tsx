import { Anchor, Paper, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError, client, unwrap } from '../../api/client.ts'
import type { Session } from '../../api/session.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { AuthLayout } from './AuthLayout.tsx'

/** Asks for the second factor after the right password. */
export function SecondStep({
  challenge,
  onSignedIn,
  onBack,
}: {
  challenge: string
  onSignedIn: (session: Session) => void
  onBack: () => void
}) {
  const [code, setCode] = useState('')
  const [isRecovering, setRecovering] = useState(false)
  const enter = useMutation({
    mutationFn: () =>
      unwrap(client.POST('/dashboard/session/second-factor', { body: { challenge, code } })),
    onSuccess: onSignedIn,
  })
  const isWrong = enter.error instanceof ApiError && enter.error.status === 401
  const toggle = () => {
    enter.reset()
    setCode('')
    setRecovering(!isRecovering)
  }
  return (
    <AuthLayout>
      <Title order={1}>Second factor</Title>
      <Text className="soft" size="sm" mb="md">
        {isRecovering
          ? 'Enter one of the recovery codes that you saved. Each works once.'
          : 'Enter the code that your authenticator app shows for Annals.'}
      </Text>
      <Paper
        component="form"
        onSubmit={(event) => {
          event.preventDefault()
          enter.mutate()
        }}
      >
        <Stack>
          <TextInput
            key={String(isRecovering)}
            label={isRecovering ? 'Recovery code' : 'Code'}
            withAsterisk={false}
            autoComplete={isRecovering ? 'off' : 'one-time-code'}
            inputMode={isRecovering ? 'text' : 'numeric'}
            error={isWrong ? enter.error?.message : null}
            errorProps={{ role: 'alert', fz: 'sm' }}
            required
            autoFocus
            maxLength={64}
            value={code}
            onChange={(event) => setCode(event.currentTarget.value)}
          />
          {!isWrong && <ErrorBox error={enter.error} />}
          <BusyButton type="submit" isBusy={enter.isPending}>
            Sign in
          </BusyButton>
          <Anchor component="button" type="button" size="sm" onClick={toggle}>
            {isRecovering ? 'Use a code of your app' : 'Use a recovery code'}
          </Anchor>
          <Anchor component="button" type="button" size="sm" onClick={onBack}>
            Back to sign-in
          </Anchor>
        </Stack>
      </Paper>
    </AuthLayout>
  )
}
