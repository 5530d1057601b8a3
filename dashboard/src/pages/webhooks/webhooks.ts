import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'

const REFRESH_MS = 10_000

/** Null for all workspaces that the member sees. */
export function useWebhooks(workspaceId: string | null) {
  const query = workspaceId === null ? {} : { workspaceId }
  return useQuery({
    queryKey: ['webhooks', workspaceId ?? 'all'],
    queryFn: () => unwrap(client.GET('/dashboard/webhooks', { params: { query } })),
    refetchInterval: REFRESH_MS,
  })
}
