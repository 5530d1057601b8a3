import { Group, Stack, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { Gate } from '../../parts/Gate.tsx'
import { SECRET_LABEL_NOTE } from './delivery-text.ts'
import type { Webhook } from './webhook-types.ts'
import { refreshWebhook } from './WebhookActions.tsx'

/** Changes the label of the current secret. */
export function SecretLabelForm({ webhook: { id, secretLabel } }: { webhook: Webhook }) {
  const [value, setValue] = useState(secretLabel ?? '')
  const save = useMutation({
    mutationFn: () =>
      unwrap(
        client.PATCH('/dashboard/webhooks/{webhookId}', {
          params: { path: { webhookId: id } },
          body: { secretLabel: value === '' ? null : value },
        }),
      ),
    onSuccess: () => refreshWebhook(id),
  })
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        save.mutate()
      }}
    >
      <Title order={2} mb={4}>
        Secret label
      </Title>
      <Stack gap="xs">
        <TextInput
          aria-label="Secret label"
          description={SECRET_LABEL_NOTE}
          maxLength={64}
          value={value}
          onChange={(event) => setValue(event.currentTarget.value)}
        />
        <ErrorBox error={save.error} />
        <Group>
          <Gate permission="webhooks.manage" action="change webhooks">
            <BusyButton
              type="submit"
              size="xs"
              disabled={value === (secretLabel ?? '')}
              isBusy={save.isPending}
            >
              Save label
            </BusyButton>
          </Gate>
        </Group>
      </Stack>
    </form>
  )
}
