import { Button, Group, Stack, Text, TextInput, Title } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { Gate } from '../../parts/Gate.tsx'
import { SecretLabelForm } from './SecretLabelForm.tsx'
import { SecretRotation } from './SecretRotation.tsx'
import { urlError } from './url-error.ts'
import type { Webhook } from './webhook-types.ts'
import { refreshWebhook } from './WebhookActions.tsx'

export function WebhookSettings({ webhook }: { webhook: Webhook }) {
  return (
    <Stack gap="xl" maw={560}>
      <UrlForm webhook={webhook} key={webhook.url} />
      <SecretLabelForm webhook={webhook} key={webhook.secretLabel} />
      <SecretRotation webhook={webhook} />
      <Deletion webhook={webhook} />
    </Stack>
  )
}

function UrlForm({ webhook: { id, url } }: { webhook: Webhook }) {
  const [value, setValue] = useState(url)
  const save = useMutation({
    mutationFn: () =>
      unwrap(
        client.PATCH('/dashboard/webhooks/{webhookId}', {
          params: { path: { webhookId: id } },
          body: { url: value },
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
        URL
      </Title>
      <Stack gap="xs">
        <TextInput
          aria-label="URL"
          description="Used for all further attempts, including those of pending deliveries."
          value={value}
          onChange={(event) => setValue(event.currentTarget.value)}
          error={urlError(save.error)}
        />
        {urlError(save.error) === null && <ErrorBox error={save.error} />}
        <Group>
          <Gate permission="webhooks.manage" action="change webhooks">
            <BusyButton type="submit" size="xs" disabled={value === url} isBusy={save.isPending}>
              Save URL
            </BusyButton>
          </Gate>
        </Group>
      </Stack>
    </form>
  )
}

function Deletion({ webhook: { id, url } }: { webhook: Webhook }) {
  const [isOpen, setOpen] = useState(false)
  const navigate = useNavigate()
  const remove = useMutation({
    mutationFn: () =>
      unwrap(
        client.DELETE('/dashboard/webhooks/{webhookId}', { params: { path: { webhookId: id } } }),
      ),
    onSuccess: async () => {
      await queryClient.invalidateQueries({ queryKey: ['webhooks'] })
      await navigate({ to: '/app/webhooks' })
    },
  })
  const { host } = new URL(url)
  return (
    <section>
      <Title order={2} mb={4}>
        Delete webhook
      </Title>
      <Text size="sm" className="soft" mb="xs">
        To stop it temporarily, disable it instead.
      </Text>
      <Gate permission="webhooks.manage" action="delete webhooks">
        <Button size="xs" color="red" variant="outline" onClick={() => setOpen(true)}>
          Delete webhook
        </Button>
      </Gate>
      <ConfirmDialog
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        title="Delete webhook"
        consequence="Annals stops sending to this webhook and deletes its deliveries, including pending ones."
        name={host}
        action="Delete webhook"
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => remove.mutate()}
      />
    </section>
  )
}
