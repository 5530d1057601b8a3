import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import type { WebhookPage } from './webhook-types.ts'

const REFRESH_MS = 10_000

/** Null for all workspaces that the member sees. */
export function useWebhooks(workspaceId: string | null) {
  return useQuery({
    queryKey: ['webhooks', workspaceId ?? 'all'],
    queryFn: () => readAllPages(workspaceId),
    refetchInterval: REFRESH_MS,
  })
}

async function readAllPages(workspaceId: string | null): Promise<WebhookPage> {
  const pages = [await readPage(workspaceId, null)]
  const [first] = pages
  for (let last = first; last?.nextCursor; last = pages.at(-1)) {
    pages.push(await readPage(workspaceId, last.nextCursor))
  }
  // An empty list has to be the body of the response, which may lack data.
  if (pages.length === 1 && first) return first
  return { webhooks: pages.flatMap(({ webhooks }) => webhooks), nextCursor: null }
}

async function readPage(workspaceId: string | null, cursor: string | null): Promise<WebhookPage> {
  const query = { ...(workspaceId !== null && { workspaceId }), ...(cursor !== null && { cursor }) }
  return await unwrap(client.GET('/dashboard/webhooks', { params: { query } }))
}
