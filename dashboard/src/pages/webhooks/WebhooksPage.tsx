import { Alert, Button, Skeleton, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { EmptyState } from '../../parts/EmptyState.tsx'
import { ErrorBox } from '../../parts/ErrorBox.tsx'
import { Gate } from '../../parts/Gate.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { useSigned } from '../../shell/session-context.tsx'
import { useCompany } from '../company/company.ts'
import { CreateWebhook } from './CreateWebhook.tsx'
import { LocalReceiver } from './LocalReceiver.tsx'
import { WebhookRow } from './WebhookRow.tsx'
import { useWebhooks } from './webhooks.ts'

/** All webhooks, each with its health. */
export function WebhooksPage() {
  const { workspace, may } = useSigned()
  const mayCreate = may('webhooks.manage')
  const [isCreating, setCreating] = useState(false)
  const list = useWebhooks(workspace?.id ?? null)
  const webhooks = list.data?.webhooks ?? []
  const { data: company } = useCompany()
  const planReason =
    company?.plan.hasWebhooks === false
      ? `The plan ${company.plan.name} has no webhooks; they begin with PRO.`
      : null
  const newButton = <NewButton planReason={planReason} onClick={() => setCreating(true)} />
  return (
    <>
      <PageHeader
        title="Webhooks"
        about="Each event is sent to your address within moments of its commit, signed, and retried until it is taken."
      >
        {webhooks.length > 0 && newButton}
      </PageHeader>
      {planReason !== null && (
        <Alert color="yellow" variant="light" mb="md" title={planReason}>
          Whoever runs this service changes the plan. Webhooks that were made before are disabled,
          and can be enabled again with such a plan.
        </Alert>
      )}
      <ErrorBox error={list.error} onRetry={list.refetch} />
      <Stack gap="xs">
        {list.isPending && <Skeleton height={72} radius="sm" />}
        {webhooks.map((webhook) => (
          <WebhookRow webhook={webhook} key={webhook.id} />
        ))}
      </Stack>
      {list.data && webhooks.length === 0 && (
        <EmptyState icon="webhook" title="No webhooks yet">
          <Text size="sm" className="soft" ta="center" maw={460}>
            A webhook is an address of yours that gets a POST for every event.
            {!mayCreate && ' Owners and admins create them.'}
          </Text>
          {mayCreate && newButton}
          {mayCreate && planReason === null && <LocalReceiver />}
        </EmptyState>
      )}
      <CreateWebhook isOpen={isCreating} onClose={() => setCreating(false)} />
    </>
  )
}

function NewButton({ planReason, onClick }: { planReason: string | null; onClick: () => void }) {
  return (
    <Gate permission="webhooks.manage" what="create webhooks" otherwise={planReason}>
      <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={onClick}>
        New webhook
      </Button>
    </Gate>
  )
}
