import { Skeleton, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { client, unwrap } from '../../api/client.ts'
import { formatCount } from '../../parts/format.ts'
import { StatusText } from '../../parts/StatusText.tsx'
import { useSession } from '../../api/session-context.tsx'
import { successRateText, p95Text } from './health-text.ts'
import { HealthBars } from './HealthBars.tsx'
import type { Webhook } from './webhook-types.ts'
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
        <WebhookState webhook={webhook} />
      </Text>
      <Text size="xs" className="soft numeric">
        {health.data && successRateText(health.data, webhook)}
        <br />
        {health.data && p95Text(health.data)}
      </Text>
      {health.data ? <HealthBars hours={health.data.hours} /> : <Skeleton height={28} />}
    </Link>
  )
}

export function WebhookState({
  webhook: { status, failureCount },
}: {
  webhook: Pick<Webhook, 'status' | 'failureCount'>
}) {
  if (status === 'DISABLED') return <StatusText tone="neutral">Disabled</StatusText>
  if (failureCount > 0) {
    return <StatusText tone="warn">{`${formatCount(failureCount)} failed in a row`}</StatusText>
  }
  return <StatusText tone="good">Enabled</StatusText>
}
