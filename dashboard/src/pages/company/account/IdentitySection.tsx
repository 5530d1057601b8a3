import { Button, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../../api/client.ts'
import { ConfirmDialog } from '../../../parts/dialog/ConfirmDialog.tsx'
import { DisabledReason } from '../../../parts/DisabledReason.tsx'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { TimeText } from '../../../parts/time/TimeText.tsx'
import { refreshIdentity, useIdentity } from '../../sign-in/provider.ts'

/** Whether the member's account is linked to the identity provider. Empty if there is no provider. */
export function IdentitySection() {
  const { data } = useIdentity()
  const [isAsking, setAsking] = useState(false)
  const unlink = useMutation({
    mutationFn: () => unwrap(client.DELETE('/dashboard/identity')),
    onSuccess: async () => {
      setAsking(false)
      await refreshIdentity()
    },
  })
  if (!data?.provider) return null
  const { name } = data.provider
  return (
    <section aria-labelledby="sign-in">
      <Title order={2} id="sign-in" mb="xs">
        Sign-in
      </Title>
      {data.link ? (
        <Stack gap="xs" align="flex-start">
          <Text size="sm" component="div">
            <StatusText tone="good">{`Linked to ${name}`}</StatusText>
          </Text>
          <Text size="sm">
            Since <TimeText at={data.link.linkedAt} style="day" />, last used{' '}
            <TimeText at={data.link.usedAt} style="day" />.
          </Text>
          <DisabledReason
            reason={
              data.hasPassword ? null : 'Set a password first, so that you can still sign in.'
            }
          >
            <Button size="xs" variant="default" onClick={() => setAsking(true)}>
              Unlink account
            </Button>
          </DisabledReason>
        </Stack>
      ) : (
        <Text size="sm">
          Your account is not linked to {name}. Signing in with {name} and the same email address
          links it.
        </Text>
      )}
      <ConfirmDialog
        isOpen={isAsking}
        title={`Unlink your account from ${name}?`}
        consequence={`After that, you sign in with your password. Signing in with ${name} and the same email address links the account again.`}
        name={null}
        action="Unlink account"
        error={unlink.error}
        isBusy={unlink.isPending}
        onConfirm={() => unlink.mutate()}
        onClose={() => setAsking(false)}
      />
    </section>
  )
}
