import { Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { client, unwrap } from '../../api/client.ts'
import { StatusText, type Tone } from '../../parts/text/StatusText.tsx'
import { useSession } from '../../api/session-context.tsx'
import { backlogTexts, p95Text, rateTexts } from './health-text.ts'
import { HealthBars } from './HealthBars.tsx'
import type { Webhook, WebhookHealth } from './webhook-types.ts'
import classes from './WebhookRow.module.css'

export function useHealth(webhookId: string, refreshMs = 10_000) {
  return useQuery({
    queryKey: ['webhook-health', webhookId],
    queryFn: () =>
      unwrap(
        client.GET('/dashboard/webhooks/{webhookId}/health', { params: { path: { webhookId } } }),
      ),
    refetchInterval: refreshMs,
  })
}

export function WebhookRow({ webhook }: { webhook: Webhook }) {
  const { session } = useSession()
  const health = useHealth(webhook.id)
  const workspace = session.workspaces.find(({ id }) => id === webhook.workspaceId)
  return (
    <Link to="/app/webhooks/$webhookId" params={{ webhookId: webhook.id }} className={classes.row}>
      <div>
        <Text size="sm" fw={500} truncate>
          {webhook.name ?? webhook.url}
        </Text>
        <Text size="xs" className="soft" truncate>
          {webhook.name !== null && `${webhook.url} · `}
          {workspace?.name}
          {webhook.filter && ' · filtered'}
          {webhook.secretLabel ? ` · secret “${webhook.secretLabel}”` : ''}
        </Text>
      </div>
      <Text size="sm" component="span">
        <WebhookState webhook={webhook} health={health.data} />
      </Text>
      <Text size="xs" className="soft numeric">
        {health.data &&
          [
            ...rateTexts(health.data, webhook),
            backlogTexts(health.data).join(', ') || p95Text(health.data),
          ].map((text) => <div key={text}>{text}</div>)}
      </Text>
      {health.data ? <HealthBars hours={health.data.hours} /> : <Skeleton height={28} />}
    </Link>
  )
}

/** Follows the delivery rate and the backlog. Without deliveries, it is neither good nor bad. */
export function WebhookState({
  webhook: { status },
  health,
}: {
  webhook: Pick<Webhook, 'status'>
  health: WebhookHealth | undefined
}) {
  if (status === 'DISABLED') return <StatusText tone="neutral">Disabled</StatusText>
  const { tone, label } = STATES[health?.state ?? 'IDLE']
  return <StatusText tone={tone}>{label}</StatusText>
}

const STATES: Record<WebhookHealth['state'], { tone: Tone; label: string }> = {
  HEALTHY: { tone: 'good', label: 'Healthy' },
  DEGRADED: { tone: 'warn', label: 'Degraded' },
  FAILING: { tone: 'bad', label: 'Failing' },
  IDLE: { tone: 'neutral', label: 'Enabled' },
}
