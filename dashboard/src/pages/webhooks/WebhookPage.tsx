import { Group, Skeleton, Tabs, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { client, unwrap } from '../../api/client.ts'
import { isNotFound } from '../../api/not-found.ts'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { ErrorBox } from '../../parts/message/ErrorBox.tsx'
import { PageHeader } from '../../parts/PageHeader.tsx'
import { useSession } from '../../api/session-context.tsx'
import { pluralize } from '../../parts/text/pluralize.ts'
import { Deliveries } from './delivery/Deliveries.tsx'
import { filterTexts } from './settings/filter-draft.ts'
import { healthText } from './health-text.ts'
import { HealthBars } from './HealthBars.tsx'
import { SignatureCheck } from './settings/SignatureCheck.tsx'
import { WebhookActions } from './WebhookActions.tsx'
import { WEBHOOK_TABS } from './webhook-search.ts'
import type { Webhook } from './webhook-types.ts'
import { useHealth, WebhookState } from './WebhookRow.tsx'
import { WebhookSettings } from './settings/WebhookSettings.tsx'

const route = getRouteApi('/shell/app/webhooks/$webhookId')
/** Same as the list of deliveries, so that the numbers match. */
const REFRESH_MS = 5_000

/** One webhook: its health, deliveries, signature check and settings. */
export function WebhookPage() {
  const { webhookId } = route.useParams()
  const webhook = useQuery({
    queryKey: ['webhook', webhookId],
    queryFn: () =>
      unwrap(client.GET('/dashboard/webhooks/{webhookId}', { params: { path: { webhookId } } })),
    refetchInterval: REFRESH_MS,
  })
  const health = useHealth(webhookId, REFRESH_MS)
  const { session } = useSession()
  if (!webhook.data) {
    if (isNotFound(webhook.error)) return <WebhookNotFound />
    return webhook.error ? (
      <ErrorBox error={webhook.error} onRetry={webhook.refetch} />
    ) : (
      <Skeleton height={160} radius="sm" />
    )
  }
  const { name, url, workspaceId } = webhook.data
  const workspace = session.workspaces.find(({ id }) => id === workspaceId)
  return (
    <>
      <AnchorLink to="/app/webhooks">All webhooks</AnchorLink>
      <PageHeader
        title={name ?? url}
        description={`${name === null ? '' : `${url} · `}Workspace: ${workspace?.name ?? workspaceId}`}
      >
        <WebhookActions webhook={webhook.data} />
      </PageHeader>
      <Group gap="lg" mb="md" mih={34}>
        <Text size="sm" component="span">
          <WebhookState webhook={webhook.data} health={health.data} />
        </Text>
        {health.data && <HealthBars hours={health.data.hours} />}
        {health.data && (
          <Text size="sm" className="soft numeric">
            {healthText(health.data, webhook.data)}
          </Text>
        )}
      </Group>
      {webhook.data.disabledReason && (
        <Text size="sm" mb="md">
          {webhook.data.disabledReason} After you enable it, use “Resend missed events” to send the
          events received meanwhile.
        </Text>
      )}
      <Selection webhook={webhook.data} />
      <WebhookTabs webhook={webhook.data} />
    </>
  )
}

function WebhookTabs({ webhook }: { webhook: Webhook }) {
  const { tab } = route.useSearch()
  const navigate = route.useNavigate()
  return (
    <Tabs
      value={tab ?? 'deliveries'}
      onChange={(value) => {
        const chosen = WEBHOOK_TABS.find((name) => name === value)
        void navigate({ search: chosen ? { tab: chosen } : {}, resetScroll: false })
      }}
      keepMounted={false}
    >
      <Tabs.List>
        <Tabs.Tab value="deliveries">Deliveries</Tabs.Tab>
        <Tabs.Tab value="signature">Signature check</Tabs.Tab>
        <Tabs.Tab value="settings">Settings</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="deliveries" pt="md">
        <Deliveries webhook={webhook} />
      </Tabs.Panel>
      <Tabs.Panel value="signature" pt="md">
        <SignatureCheck webhookId={webhook.id} />
      </Tabs.Panel>
      <Tabs.Panel value="settings" pt="md">
        <WebhookSettings webhook={webhook} />
      </Tabs.Panel>
    </Tabs>
  )
}

/** Which events are sent, and with which headers. */
function Selection({ webhook: { filter, filteredCount, headerNames } }: { webhook: Webhook }) {
  const texts = [
    ...(filter ? filterTexts(filter) : []),
    ...(filteredCount > 0 ? [`${pluralize(filteredCount, 'event')} left out`] : []),
    ...(headerNames.length > 0 ? [`Headers: ${headerNames.join(', ')}`] : []),
  ]
  if (texts.length === 0) return null
  return (
    <Text size="sm" className="soft" mb="md" style={{ overflowWrap: 'anywhere' }}>
      {texts.join(' · ')}
    </Text>
  )
}

/** The link is outdated or incomplete, or the member may not see the webhook. */
function WebhookNotFound() {
  return (
    <>
      <AnchorLink to="/app/webhooks">All webhooks</AnchorLink>
      <PageHeader
        title="Webhook not found"
        description="The webhook may have been deleted, or it belongs to a workspace you can’t access."
      />
    </>
  )
}
