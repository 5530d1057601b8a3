import { Group, PasswordInput, type PasswordInputProps, Stack, Text, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ApiError, client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import { BusyButton } from '../../../parts/BusyButton.tsx'
import { ErrorBox } from '../../../parts/message/ErrorBox.tsx'
import { StatusText } from '../../../parts/text/StatusText.tsx'
import { useSession } from '../../../api/session-context.tsx'
import { pluralize } from '../../../parts/text/pluralize.ts'

const EMPTY = { current: '', next: '', again: '' }

export function PasswordForm() {
  const { session } = useSession()
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
      {/* As high as the heading of the sessions beside it, which has a button. */}
      <Title order={2} id="password" mb="xs" lh="30px">
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
          <PasswordInputs field={field} errors={fieldErrors} isDifferent={isDifferent} />
          {fieldErrors.isElsewhere && <ErrorBox error={change.error} />}
          <Group gap="sm">
            <BusyButton type="submit" size="xs" isBusy={change.isPending} disabled={isDifferent}>
              Change password
            </BusyButton>
            <div role="status">
              {change.data && (
                <StatusText tone="good">
                  {`Password changed, ${pluralize(change.data.endedSessions, 'other session')} ended`}
                </StatusText>
              )}
            </div>
          </Group>
          <Text size="xs" className="soft">
            Changing your password ends all your other sessions and open reset links.
          </Text>
        </Stack>
      </form>
    </section>
  )
}

function PasswordInputs({
  field,
  errors,
  isDifferent,
}: {
  field: (name: keyof typeof EMPTY) => PasswordInputProps
  errors: FieldErrors
  isDifferent: boolean
}) {
  return (
    <>
      <PasswordInput
        label="Current password"
        autoComplete="current-password"
        error={errors.currentPassword}
        {...field('current')}
      />
      <PasswordInput
        label="New password"
        description="10 to 200 characters. Can’t be your email address or a common password. A phrase of several words works well."
        autoComplete="new-password"
        error={errors.newPassword}
        {...field('next')}
      />
      <PasswordInput
        label="Confirm new password"
        autoComplete="new-password"
        error={isDifferent && 'The passwords don’t match.'}
        {...field('again')}
      />
    </>
  )
}

type FieldErrors = { currentPassword?: string; newPassword?: string; isElsewhere: boolean }

/** Assigns each error to the field that caused it. */
function fieldErrorsOf(error: Error | null): FieldErrors {
  const details = error instanceof ApiError ? error.details : []
  const messageFor = (path: string) => details.find((detail) => detail.path === path)?.message
  const current = messageFor('/currentPassword')
  const next = messageFor('/newPassword')
  return {
    ...(current !== undefined && { currentPassword: `This ${current}.` }),
    ...(next !== undefined && { newPassword: `The new password ${next}.` }),
    isElsewhere: current === undefined && next === undefined,
  }
}
