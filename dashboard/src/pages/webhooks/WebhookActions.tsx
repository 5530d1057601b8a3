import { Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import { BusyButton } from '../../parts/BusyButton.tsx'
import { ConfirmDialog } from '../../parts/dialog/ConfirmDialog.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { Gate } from '../../parts/Gate.tsx'
import { ENABLE_FIRST } from './delivery/delivery-text.ts'
import classes from './WebhookActions.module.css'
import { TestResult } from './settings/TestResult.tsx'
import type { Webhook } from './webhook-types.ts'

export function refreshWebhook(webhookId: string): Promise<unknown> {
  return Promise.all(
    [
      ['webhook', webhookId],
      ['webhooks'],
      ['deliveries', webhookId],
      ['webhook-health', webhookId],
    ].map((queryKey) => queryClient.invalidateQueries({ queryKey })),
  )
}

/** Sends a test, and enables or disables the webhook. */
export function WebhookActions({ webhook: { id, status } }: { webhook: Webhook }) {
  const [isDisabling, setDisabling] = useState(false)
  const path = { params: { path: { webhookId: id } } }
  const test = useMutation({
    mutationFn: () => unwrap(client.POST('/dashboard/webhooks/{webhookId}/test', path)),
    onSettled: () => refreshWebhook(id),
  })
  const toggle = useMutation({
    mutationFn: () =>
      unwrap(
        status === 'ENABLED'
          ? client.POST('/dashboard/webhooks/{webhookId}/disable', path)
          : client.POST('/dashboard/webhooks/{webhookId}/enable', path),
      ),
    onSettled: () => refreshWebhook(id),
  })
  return (
    <>
      <Text size="sm" className={`soft ${classes.said}`} role="status">
        {test.data && (
          <TestResult
            webhookId={id}
            deliveryId={test.data.deliveryId}
            onEnd={() => void refreshWebhook(id)}
          />
        )}
      </Text>
      <Gate
        permission="webhooks.manage"
        action="send test deliveries"
        otherReason={status === 'DISABLED' ? ENABLE_FIRST : null}
      >
        <BusyButton
          size="xs"
          variant="default"
          isBusy={test.isPending}
          onClick={() => test.mutate()}
        >
          Send test
        </BusyButton>
      </Gate>
      <Gate permission="webhooks.manage" action="enable or disable webhooks">
        <BusyButton
          size="xs"
          variant="default"
          isBusy={toggle.isPending}
          onClick={() => (status === 'ENABLED' ? setDisabling(true) : toggle.mutate())}
        >
          {status === 'ENABLED' ? 'Disable webhook' : 'Enable webhook'}
        </BusyButton>
      </Gate>
      <ErrorBox error={test.error ?? (isDisabling ? null : toggle.error)} />
      <ConfirmDialog
        isOpen={isDisabling}
        onClose={() => setDisabling(false)}
        title="Disable webhook"
        consequence="Annals stops sending to this webhook, and pending deliveries fail. After you enable it again, you can send both with “Resend missed events”."
        name={null}
        action="Disable webhook"
        isBusy={toggle.isPending}
        error={toggle.error}
        onConfirm={() => toggle.mutate(undefined, { onSuccess: () => setDisabling(false) })}
      />
    </>
  )
}
