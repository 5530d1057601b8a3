import { Button, Skeleton, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { client, unwrap } from '../../api/client.ts'
import { EmptyState } from '../../parts/EmptyState.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { Gate } from '../../parts/Gate.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { useSigned } from '../../shell/session-context.tsx'
import { CreateWebhook } from './CreateWebhook.tsx'
import { LocalReceiver } from './LocalReceiver.tsx'
import { WebhookRow } from './WebhookRow.tsx'

/** Each webhook with its health at a glance. */
export function WebhooksPage() {
  const { workspace } = useSigned()
  const [isCreating, setCreating] = useState(false)
  const query = workspace ? { workspaceId: workspace.id } : {}
  const list = useQuery({
    queryKey: ['webhooks', workspace?.id ?? 'all'],
    queryFn: () => unwrap(client.GET('/dashboard/webhooks', { params: { query } })),
    refetchInterval: 10_000,
  })
  const webhooks = list.data?.webhooks ?? []
  const createButton = (
    <Gate permission="webhooks.manage" what="create webhooks">
      {(isDisabled) => (
        <Button size="xs" disabled={isDisabled} onClick={() => setCreating(true)}>
          New webhook
        </Button>
      )}
    </Gate>
  )
  return (
    <>
      <PageHeader
        title="Webhooks"
        about="Each event is sent to your address within moments of its commit, signed, and retried until it is taken."
      >
        {createButton}
      </PageHeader>
      <ErrorBox error={list.error} />
      <Stack gap="xs">
        {list.isPending && <Skeleton height={72} radius="sm" />}
        {webhooks.map((webhook) => (
          <WebhookRow webhook={webhook} key={webhook.id} />
        ))}
      </Stack>
      {list.data && webhooks.length === 0 && (
        <EmptyState icon="webhook" title="No webhooks yet">
          <Text size="sm" className="soft" ta="center" maw={460}>
            A webhook is an address of yours that gets a POST for every event. To try it without a
            server of your own, run this receiver and give its address.
          </Text>
          <LocalReceiver />
        </EmptyState>
      )}
      <CreateWebhook isOpen={isCreating} onClose={() => setCreating(false)} />
    </>
  )
}
