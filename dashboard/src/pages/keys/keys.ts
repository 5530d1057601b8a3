import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import type { paths } from '../../api/schema.d.ts'
import { usePages } from '../../parts/use-pages.ts'

export type Key =
  paths['/dashboard/keys']['get']['responses'][200]['content']['application/json']['data'][number]
export type NewKey =
  paths['/dashboard/keys']['post']['responses'][201]['content']['application/json']
export type KeyScope = Key['scope']

const PAGE_KEYS = 100

/** Newest first, those that have ended included. */
export function useKeys(workspaceId: string | null) {
  return usePages(['keys', workspaceId], (onward) => {
    const query = { limit: PAGE_KEYS, ...(workspaceId !== null && { workspaceId }), ...onward }
    return unwrap(client.GET('/dashboard/keys', { params: { query } }))
  })
}

/** Workspaces and the company count their keys, so they change as well. */
export async function refreshKeys(): Promise<void> {
  await Promise.all(
    ['keys', 'workspaces', 'company'].map((first) =>
      queryClient.invalidateQueries({ queryKey: [first] }),
    ),
  )
}

export function isWorking({ status }: Pick<Key, 'status'>): boolean {
  return status === 'ACTIVE' || status === 'ROTATING'
}
