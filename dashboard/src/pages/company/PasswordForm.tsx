import { Group, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError, client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { StatusText } from '../../parts/StatusText.tsx'
import { useSigned } from '../../shell/session-context.tsx'
import { counted } from './counted.ts'

const EMPTY = { current: '', next: '', again: '' }

export function PasswordForm() {
  const { session } = useSigned()
  const [typed, setTyped] = useState(EMPTY)
  const change = useMutation({
    mutationFn: () =>
      unwrap(
        client.POST('/dashboard/password', {
          body: { currentPassword: typed.current, newPassword: typed.next },
        }),
      ),
    onSuccess: async () => {
      setTyped(EMPTY)
      await queryClient.invalidateQueries({ queryKey: ['sessions'] })
    },
  })
  const fieldErrors = fieldErrorsOf(change.error)
  const isDifferent = typed.again !== '' && typed.again !== typed.next
  const field = (name: keyof typeof EMPTY) => ({
    required: true,
    value: typed[name],
    onChange: (event: React.ChangeEvent<HTMLInputElement>) => {
      const { value } = event.currentTarget
      if (!change.isIdle) change.reset()
      setTyped((before) => ({ ...before, [name]: value }))
    },
  })
  return (
    <section aria-labelledby="password">
      <Title order={2} id="password" mb="xs">
        Password
      </Title>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (typed.again === typed.next) change.mutate()
        }}
      >
        <Stack gap="sm" maw={400}>
          {/* Tells password managers which account the password belongs to. */}
          <input type="hidden" autoComplete="username" value={session.user.email} readOnly />
          <PasswordInput
            label="Your present password"
            autoComplete="current-password"
            error={fieldErrors.currentPassword}
            {...field('current')}
          />
          <PasswordInput
            label="The new one"
            description="10 to 200 characters; neither your e-mail address nor one of the most common ones. A few words in a row are good."
            autoComplete="new-password"
            error={fieldErrors.newPassword}
            {...field('next')}
          />
          <PasswordInput
            label="The new one again"
            autoComplete="new-password"
            error={isDifferent && 'This is not the same as above.'}
            {...field('again')}
          />
          {fieldErrors.isElsewhere && <ErrorBox error={change.error} />}
          <Group gap="sm">
            <BusyButton type="submit" size="xs" isBusy={change.isPending} disabled={isDifferent}>
              Change the password
            </BusyButton>
            <div role="status">
              {change.data && (
                <StatusText tone="good">
                  {`Changed; ${counted(change.data.endedSessions, 'other session')} ended`}
                </StatusText>
              )}
            </div>
          </Group>
          <Text size="xs" className="soft">
            Everybody else who is signed in as you is signed out, and open password links end.
          </Text>
        </Stack>
      </form>
    </section>
  )
}

type FieldErrors = { currentPassword?: string; newPassword?: string; isElsewhere: boolean }

/** Assigns each error to the field that caused it. */
function fieldErrorsOf(error: Error | null): FieldErrors {
  const details = error instanceof ApiError ? error.details : []
  const about = (path: string) => details.find((detail) => detail.path === path)?.message
  const current = about('/currentPassword')
  const next = about('/newPassword')
  return {
    ...(current !== undefined && { currentPassword: `This ${current}.` }),
    ...(next !== undefined && { newPassword: `It ${next}.` }),
    isElsewhere: current === undefined && next === undefined,
  }
}
