import { List } from '@mantine/core'
import { useSession } from '../../api/session-context.tsx'
import { AnchorLink } from '../../parts/AnchorLink.tsx'
import { pluralize } from '../../parts/text/pluralize.ts'
import { backlogTexts, rateTexts } from '../webhooks/health-text.ts'
import type { Webhook } from '../webhooks/webhook-types.ts'
import { useHealth, WebhookState } from '../webhooks/WebhookRow.tsx'
import { useWebhooks } from '../webhooks/webhooks.ts'

/** Each webhook costs a request. The webhooks page shows the rest. */
const WEBHOOKS_SHOWN_MAX = 5
const REFRESH_MS = 60_000

/** Whether the receivers of a workspace's webhooks got its events. */
export function WebhookGaps({ workspaceId }: { workspaceId: string }) {
  const { hasPermission } = useSession()
  return hasPermission('webhooks.read') ? <Gaps workspaceId={workspaceId} /> : null
}

function Gaps({ workspaceId }: { workspaceId: string }) {
  const { data } = useWebhooks(workspaceId)
  if (!data) return null
  const { webhooks } = data
  if (webhooks.length === 0) return <List.Item>No webhooks receive these events.</List.Item>
  const more = webhooks.length - WEBHOOKS_SHOWN_MAX
  return (
    <>
      {webhooks.slice(0, WEBHOOKS_SHOWN_MAX).map((webhook) => (
        <WebhookGap webhook={webhook} key={webhook.id} />
      ))}
      {more > 0 && (
        <List.Item>
          <AnchorLink to="/app/webhooks">{`Show ${pluralize(more, 'more webhook')}`}</AnchorLink>
        </List.Item>
      )}
    </>
  )
}

function WebhookGap({ webhook }: { webhook: Webhook }) {
  const { data: health } = useHealth(webhook.id, REFRESH_MS)
  return (
    <List.Item>
      <WebhookState webhook={webhook} health={health} />{' '}
      <AnchorLink to="/app/webhooks/$webhookId" params={{ webhookId: webhook.id }}>
        {webhook.name ?? webhook.url}
      </AnchorLink>
      {health && (
        <span className="soft numeric">
          {['', ...rateTexts(health, webhook), ...backlogTexts(health)].join(' · ')}
        </span>
      )}
    </List.Item>
  )
}
