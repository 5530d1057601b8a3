import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import type { Webhook, WebhookPage } from './webhook-types.ts'

const REFRESH_MS = 10_000

/** Null for all workspaces that the member sees. */
export function useWebhooks(workspaceId: string | null) {
  return useQuery({
    queryKey: ['webhooks', workspaceId ?? 'all'],
    queryFn: () => readAllPages(workspaceId),
    refetchInterval: REFRESH_MS,
  })
}

async function readAllPages(workspaceId: string | null): Promise<{ webhooks: Webhook[] }> {
  const webhooks: Webhook[] = []
  let cursor: string | null = null
  do {
    const query = {
      ...(workspaceId !== null && { workspaceId }),
      ...(cursor !== null && { cursor }),
    }
    const call = client.GET('/dashboard/webhooks', { params: { query } })
    const page: WebhookPage = await unwrap(call)
    webhooks.push(...page.webhooks)
    cursor = page.nextCursor
  } while (cursor !== null)
  return { webhooks }
}
