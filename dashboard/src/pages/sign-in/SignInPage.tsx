import { Alert, Anchor, Paper, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { useMutation } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { ApiError, client, unwrap } from '../../api/client.ts'
import { startSession } from '../../api/query-client.ts'
import { hasSessionEnded } from '../../api/session.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { AuthLayout } from './AuthLayout.tsx'
import { ForgotPassword } from './ForgotPassword.tsx'
import { clearProviderReturn, readProviderReturn } from './provider.ts'
import { ProviderProblem } from './ProviderProblem.tsx'
import { ProviderSignIn } from './ProviderSignIn.tsx'
import { SecondStep } from './SecondStep.tsx'

/** Replaces the requested page, which appears after signing in. */
export function SignInPage() {
  useDocumentTitle('Sign in · Annals')
  const [returned] = useState(readProviderReturn)
  useEffect(clearProviderReturn, [])
  const [challenge, setChallenge] = useState(returned.challenge)
  if (challenge === null) return <FirstStep problem={returned.problem} onChallenge={setChallenge} />
  const goBack = () => setChallenge(null)
  return <SecondStep challenge={challenge} onSignedIn={startSession} onBack={goBack} />
}

function FirstStep({
  problem,
  onChallenge,
}: {
  problem: string | null
  onChallenge: (challenge: string) => void
}) {
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [isResetting, setResetting] = useState(false)
  const [hasEnded] = useState(hasSessionEnded)
  const signIn = useMutation({
    mutationFn: () => unwrap(client.POST('/dashboard/session', { body: { email, password } })),
    onSuccess: (result) => {
      if ('challenge' in result) onChallenge(result.challenge)
      else startSession(result)
    },
  })
  // A wrong password needs no trace id.
  const isWrong = signIn.error instanceof ApiError && signIn.error.status === 401
  if (isResetting) {
    return <ForgotPassword email={email} onBack={() => setResetting(false)} />
  }
  return (
    <AuthLayout>
      <Title order={1}>Sign in</Title>
      <Greeting problem={problem} hasEnded={hasEnded} />
      <Paper
        component="form"
        onSubmit={(event) => {
          event.preventDefault()
          signIn.mutate()
        }}
      >
        <Stack>
          <TextInput
            label="Email"
            withAsterisk={false}
            type="email"
            autoComplete="username"
            required
            autoFocus
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <PasswordInput
            label="Password"
            withAsterisk={false}
            error={isWrong ? signIn.error?.message : null}
            errorProps={{ role: 'alert', fz: 'sm' }}
            autoComplete="current-password"
            required
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          {!isWrong && <ErrorBox error={signIn.error} />}
          <BusyButton type="submit" isBusy={signIn.isPending}>
            Sign in
          </BusyButton>
          <Anchor component="button" type="button" size="sm" onClick={() => setResetting(true)}>
            Forgot password?
          </Anchor>
        </Stack>
      </Paper>
      <ProviderSignIn verb="Sign in" />
    </AuthLayout>
  )
}

function Greeting({ problem, hasEnded }: { problem: string | null; hasEnded: boolean }) {
  if (problem !== null) return <ProviderProblem problem={problem} />
  if (hasEnded) return <SessionEnded />
  return (
    <Text className="soft" size="sm" mb="md">
      Find out who did what, export it, and prove that nothing is missing.
    </Text>
  )
}

function SessionEnded() {
  return (
    <Alert color="yellow" role="status" my="md" title="Your session has ended">
      Sessions end after 30 minutes of inactivity, 12 hours after sign-in, and when they are ended
      elsewhere. Sign in to return to the same page.
    </Alert>
  )
}
