import { Alert, Button, Skeleton, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { EmptyState } from '../../parts/message/EmptyState.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { Gate } from '../../parts/Gate.tsx'
import { Icon } from '../../parts/Icon.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { useSession } from '../../api/session-context.tsx'
import { useCompany } from '../company/company.ts'
import { CreateWebhook } from './CreateWebhook.tsx'
import { LocalReceiver } from './settings/LocalReceiver.tsx'
import { WebhookRow } from './WebhookRow.tsx'
import { useWebhooks } from './webhooks.ts'

/** All webhooks, each with its health. */
export function WebhooksPage() {
  const { workspace, hasPermission } = useSession()
  const mayCreate = hasPermission('webhooks.manage')
  const [isCreating, setCreating] = useState(false)
  const list = useWebhooks(workspace?.id ?? null)
  const webhooks = list.data?.webhooks ?? []
  const { data: company } = useCompany()
  const planReason =
    company?.plan.hasWebhooks === false
      ? `Creating webhooks requires the PRO plan or higher. Your plan is ${company.plan.name}.`
      : null
  const newButton = <NewButton planReason={planReason} onClick={() => setCreating(true)} />
  return (
    <>
      <PageHeader
        title="Webhooks"
        description="Annals signs each new event, sends it to your endpoint within moments, and retries failed deliveries."
      >
        {webhooks.length > 0 && newButton}
      </PageHeader>
      {planReason !== null && (
        <Alert color="yellow" variant="light" mb="md" title={planReason}>
          The change to this plan disabled all webhooks. You can enable them again. To create
          webhooks, ask your operator to change the plan.
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
            A webhook sends a POST request to your endpoint for each new event.
            {!mayCreate && ' Owners and admins can create webhooks.'}
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
    <Gate permission="webhooks.manage" action="create webhooks" otherReason={planReason}>
      <Button size="xs" leftSection={<Icon name="plus" size={14} />} onClick={onClick}>
        Create webhook
      </Button>
    </Gate>
  )
}
