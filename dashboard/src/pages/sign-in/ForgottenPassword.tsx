import { Alert, Anchor, Button, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { Doorway } from './Doorway.tsx'

/** The answer is the same for every address, so that it is no test for accounts. */
export function ForgottenPassword({ email: known, onBack }: { email: string; onBack: () => void }) {
  const [email, setEmail] = useState(known)
  const ask = useMutation({
    mutationFn: () => unwrap(client.POST('/dashboard/password-reset', { body: { email } })),
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
          ask.mutate()
        }}
      >
        <Stack>
          <TextInput
            label="E-mail"
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
              Whoever runs this service can print one: annals user reset-link --email {email}
            </Alert>
          )}
          <Button type="submit" loading={ask.isPending}>
            Send me a link
          </Button>
          <Anchor component="button" type="button" size="sm" onClick={onBack}>
            Back to the sign-in
          </Anchor>
        </Stack>
      </form>
    </Doorway>
  )
}
