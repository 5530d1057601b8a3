import { Alert, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { useSession } from '../../../api/session-context.tsx'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'

/** Replaces the form that changes the password, for a member who has none. */
export function NoPassword() {
  const { session } = useSession()
  const { email } = session.user
  const ask = useMutation({
    mutationFn: () => unwrap(client.POST('/dashboard/password-reset', { body: { email } })),
  })
  return (
    <section aria-labelledby="password">
      <Title order={2} id="password" mb="xs" lh="30px">
        Password
      </Title>
      <Stack gap="sm" align="flex-start" maw={400}>
        <Text size="sm">
          You have no password. To set one, have a link sent to {email}. It works once.
        </Text>
        <ErrorBox error={ask.error} />
        {ask.isSuccess && (
          <Alert
            color="green"
            role="status"
            title="If this installation sends mail, an email is on its way"
          >
            No email? An owner or admin of your company can create a reset link in Members.
          </Alert>
        )}
        <BusyButton size="xs" isBusy={ask.isPending} onClick={() => ask.mutate()}>
          Send link
        </BusyButton>
      </Stack>
    </section>
  )
}
