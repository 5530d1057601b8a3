import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../../api/client.ts'
import { queryClient } from '../../../api/query-client.ts'
import type { paths } from '../../../api/schema.d.ts'

export type View =
  paths['/dashboard/explorer/views']['get']['responses'][200]['content']['application/json']['views'][number]
export type ViewQuery = View['query']

export const VIEWS_KEY = ['views'] as const

export function useViews() {
  return useQuery({
    queryKey: VIEWS_KEY,
    queryFn: async () => (await unwrap(client.GET('/dashboard/explorer/views'))).views,
    staleTime: 30_000,
  })
}

export async function refreshViews(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: VIEWS_KEY })
}
