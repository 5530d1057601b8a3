import { Alert, Anchor, Code, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { Doorway } from './Doorway.tsx'
import classes from './ForgottenPassword.module.css'

/** Shows the same response for every email address, so that it doesn't reveal which accounts exist. */
export function ForgottenPassword({ email: known, onBack }: { email: string; onBack: () => void }) {
  const [email, setEmail] = useState(known)
  const ask = useMutation({
    mutationFn: (to: string) =>
      unwrap(client.POST('/dashboard/password-reset', { body: { email: to } })),
  })
  return (
    <Doorway>
      <Title order={1}>A new password</Title>
      <Text className="soft" size="sm" mb="md">
        You get a link that works once, within an hour.
      </Text>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          ask.mutate(email)
        }}
      >
        <Stack>
          <TextInput
            label="E-mail"
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
              title="If there is such an account, a mail is on its way"
            >
              No mail? An owner or admin of your company can make you a link under Company, Members.
              Whoever runs this service can print one:
              <Code block mt="xs" className={classes.command}>
                bin/annals user reset-link --email {ask.variables}
              </Code>
            </Alert>
          )}
          <BusyButton type="submit" isBusy={ask.isPending}>
            {ask.isSuccess ? 'Send another' : 'Send me a link'}
          </BusyButton>
          <Anchor component="button" type="button" size="sm" onClick={onBack}>
            Back to the sign-in
          </Anchor>
        </Stack>
      </form>
    </Doorway>
  )
}
