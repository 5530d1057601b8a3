import { PasswordInput, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useDocumentTitle } from '@mantine/hooks'
import { useMutation, useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import { type Session, SESSION_KEY } from '../../api/session.ts'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { AuthLayout } from './AuthLayout.tsx'
import { ProviderSignIn } from './ProviderSignIn.tsx'
import { SecondStep } from './SecondStep.tsx'

/**
 * Accepts an invitation or sets a new password. The token is in the URL fragment, which browsers never
 * send to a server.
 */
export function LinkPage() {
  useDocumentTitle('Annals')
  const [token] = useState(() => window.location.hash.slice(1))
  const [password, setPassword] = useState('')
  const navigate = useNavigate()
  const link = useQuery({
    queryKey: ['link', token],
    queryFn: () => unwrap(client.POST('/dashboard/links/look', { body: { token } })),
    retry: false,
  })
  const use = useMutation({
    mutationFn: () => unwrap(client.POST('/dashboard/links/use', { body: { token, password } })),
    onSuccess: (result) => {
      if (!('challenge' in result)) enter(result)
    },
  })
  const enter = (session: Session) => {
    queryClient.setQueryData(SESSION_KEY, session)
    void navigate({ to: '/app/explorer' })
  }
  if (use.data && 'challenge' in use.data) {
    const goBack = () => void navigate({ to: '/app/explorer' })
    return <SecondStep challenge={use.data.challenge} onSignedIn={enter} onBack={goBack} />
  }
  if (link.error) return <ExpiredLink />
  if (!link.data) {
    return (
      <AuthLayout>
        <Skeleton height={28} width={200} mb="xs" />
        <Skeleton height={140} />
      </AuthLayout>
    )
  }
  const { kind, email, companyName } = link.data
  const isInvitation = kind === 'INVITATION'
  return (
    <AuthLayout>
      <Title order={1}>{isInvitation ? `Join ${companyName}` : 'Reset password'}</Title>
      <Text className="soft" size="sm" mb="md">
        {email}
      </Text>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          use.mutate()
        }}
      >
        <Stack>
          <PasswordInput
            label="New password"
            description="At least 10 characters."
            autoComplete="new-password"
            required
            withAsterisk={false}
            minLength={10}
            maxLength={200}
            autoFocus
            value={password}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          <ErrorBox error={use.error} />
          <BusyButton type="submit" isBusy={use.isPending}>
            {isInvitation ? 'Join company' : 'Set password'}
          </BusyButton>
        </Stack>
      </form>
      {isInvitation && <ProviderSignIn verb="Join" linkToken={token} />}
    </AuthLayout>
  )
}

function ExpiredLink() {
  return (
    <AuthLayout>
      <Title order={1}>This link is no longer valid</Title>
      <Text mt="xs">
        Links work once and expire. Ask an owner or admin of your company for a new one.
      </Text>
      <AnchorLink to="/app/explorer" mt="md" display="inline-block">
        Go to sign-in
      </AnchorLink>
    </AuthLayout>
  )
}
