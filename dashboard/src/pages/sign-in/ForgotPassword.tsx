import { Alert, Anchor, Code, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { AuthLayout } from './AuthLayout.tsx'
import classes from './ForgotPassword.module.css'

/** Shows the same response for every email address, so that it doesn't reveal which accounts exist. */
export function ForgotPassword({ email: known, onBack }: { email: string; onBack: () => void }) {
  const [email, setEmail] = useState(known)
  const ask = useMutation({
    mutationFn: (to: string) =>
      unwrap(client.POST('/dashboard/password-reset', { body: { email: to } })),
  })
  return (
    <AuthLayout>
      <Title order={1}>Reset password</Title>
      <Text className="soft" size="sm" mb="md">
        We email you a link that works once and expires in an hour.
      </Text>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          ask.mutate(email)
        }}
      >
        <Stack>
          <TextInput
            label="Email"
            withAsterisk={false}
            type="email"
            required
            autoFocus
            value={email}
            onChange={(event) => setEmail(event.currentTarget.value)}
          />
          <ErrorBox error={ask.error} />
          {ask.isSuccess && (
            <Alert
              color="green"
              role="status"
              title="If the account exists, an email is on its way"
            >
              No email? An owner or admin of your company can create a reset link in Members. Your
              operator can create one with this command:
              <Code block mt="xs" className={classes.command}>
                bin/annals user reset-link --email {ask.variables}
              </Code>
            </Alert>
          )}
          <BusyButton type="submit" isBusy={ask.isPending}>
            {ask.isSuccess ? 'Send another link' : 'Send reset link'}
          </BusyButton>
          <Anchor component="button" type="button" size="sm" onClick={onBack}>
            Back to sign-in
          </Anchor>
        </Stack>
      </form>
    </AuthLayout>
  )
}
