import {
  Anchor,
  Button,
  Center,
  Code,
  CopyButton,
  Group,
  PasswordInput,
  Stack,
  Text,
  TextInput,
} from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { useSession } from '../../api/session-context.tsx'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { useIdentity } from '../sign-in/provider.ts'
import { QrCode } from './QrCode.tsx'
import { RecoveryCodes } from './RecoveryCodes.tsx'
import { fieldError, isFormError, refreshSecondFactor } from './second-factor.ts'

type NewFactor = { secret: string; uri: string }

/** Sets up a second factor: the password, the first code, and the recovery codes. */
export function Enrollment({ onDone }: { onDone: () => void }) {
  const [factor, setFactor] = useState<NewFactor | null>(null)
  const [codes, setCodes] = useState<readonly string[] | null>(null)
  if (codes) {
    const finish = () => {
      onDone()
      void refreshSecondFactor()
    }
    return <RecoveryCodes codes={codes} onDone={finish} />
  }
  if (factor) return <ConfirmStep factor={factor} onConfirmed={setCodes} />
  return <PasswordStep onStarted={setFactor} />
}

function PasswordStep({ onStarted }: { onStarted: (factor: NewFactor) => void }) {
  const { session } = useSession()
  const hasPassword = useIdentity().data?.hasPassword !== false
  const [currentPassword, setPassword] = useState('')
  const start = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/second-factor', { body: hasPassword ? { currentPassword } : {} }),
      ),
    onSuccess: onStarted,
  })
  return (
    <Form onSubmit={() => start.mutate()}>
      <Text size="sm">
        You need an authenticator app on your phone or in your password manager.
        {hasPassword && ' Enter your password to start.'}
      </Text>
      <input type="hidden" autoComplete="username" value={session.user.email} readOnly />
      {hasPassword && (
        <PasswordInput
          label="Password"
          withAsterisk={false}
          autoComplete="current-password"
          required
          data-autofocus
          error={fieldError(start.error, '/currentPassword')}
          value={currentPassword}
          onChange={(event) => setPassword(event.currentTarget.value)}
        />
      )}
      {isFormError(start.error) && <ErrorBox error={start.error} />}
      <BusyButton type="submit" isBusy={start.isPending}>
        Continue
      </BusyButton>
    </Form>
  )
}

function ConfirmStep({
  factor: { secret, uri },
  onConfirmed,
}: {
  factor: NewFactor
  onConfirmed: (codes: readonly string[]) => void
}) {
  const [code, setCode] = useState('')
  const confirm = useMutation({
    mutationFn: () => unwrap(client.POST('/dashboard/second-factor/confirm', { body: { code } })),
    onSuccess: ({ recoveryCodes }) => onConfirmed(recoveryCodes),
  })
  return (
    <Form onSubmit={() => confirm.mutate()}>
      <Text size="sm">
        Scan this code with your app, <Anchor href={uri}>open it in an app on this device</Anchor>,
        or type the key below into your app.
      </Text>
      <Center>
        <QrCode text={uri} label="QR code for your authenticator app" />
      </Center>
      <Group gap="xs" justify="center">
        <Code data-testid="totp-secret">{secret.replaceAll(/.{4}(?=.)/g, '$& ')}</Code>
        <CopyButton value={secret}>
          {({ copied, copy }) => (
            <Button size="compact-xs" variant="default" onClick={copy}>
              {copied ? 'Copied' : 'Copy key'}
            </Button>
          )}
        </CopyButton>
      </Group>
      <TextInput
        label="Code that the app shows"
        withAsterisk={false}
        autoComplete="one-time-code"
        inputMode="numeric"
        required
        autoFocus
        maxLength={64}
        error={fieldError(confirm.error, '/code')}
        value={code}
        onChange={(event) => setCode(event.currentTarget.value)}
      />
      {isFormError(confirm.error) && <ErrorBox error={confirm.error} />}
      <BusyButton type="submit" isBusy={confirm.isPending}>
        Turn on second factor
      </BusyButton>
    </Form>
  )
}

function Form({ onSubmit, children }: { onSubmit: () => void; children: ReactNode }) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onSubmit()
      }}
    >
      <Stack>{children}</Stack>
    </form>
  )
}
