import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from './client.ts'
import { queryClient } from './query-client.ts'
import type { paths } from './schema.d.ts'

export type Notice =
  paths['/dashboard/notices']['get']['responses'][200]['content']['application/json']['data'][number]

const NOTICES_KEY = ['notices'] as const
export const NOTICE_LIST_KEY = [...NOTICES_KEY, 'list'] as const
/** Not polled, because that would keep an unattended session open. */
const STALE_MS = 60_000

/** How many notices the member hasn't read. */
export function useUnreadCount(): number {
  const { data } = useQuery({
    queryKey: [...NOTICES_KEY, 'unread'],
    queryFn: () => unwrap(client.GET('/dashboard/notices', { params: { query: { limit: 1 } } })),
    staleTime: STALE_MS,
  })
  return data?.unreadCount ?? 0
}

export function refreshNotices(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: NOTICES_KEY })
}
