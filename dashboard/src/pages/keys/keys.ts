import { client, unwrap } from '../../api/client.ts'
import { queryClient } from '../../api/query-client.ts'
import type { paths } from '../../api/schema.d.ts'
import { usePages } from '../../parts/table/use-pages.ts'

export type Key =
  paths['/dashboard/keys']['get']['responses'][200]['content']['application/json']['data'][number]
export type NewKey =
  paths['/dashboard/keys']['post']['responses'][201]['content']['application/json']
export type KeyScope = Key['scope']

const PAGE_KEYS = 100

/** The keys, newest first, including those that have ended. */
export function useKeys(workspaceId: string | null) {
  return usePages(['keys', workspaceId], (cursorQuery) => {
    const query = { limit: PAGE_KEYS, ...(workspaceId !== null && { workspaceId }), ...cursorQuery }
    return unwrap(client.GET('/dashboard/keys', { params: { query } }))
  })
}

/** Includes the workspaces and the company, which show the number of their keys. */
export async function refreshKeys(): Promise<void> {
  await Promise.all(
    ['keys', 'workspaces', 'company'].map((first) =>
      queryClient.invalidateQueries({ queryKey: [first] }),
    ),
  )
}

export const STATUS_LABELS: Record<Key['status'], string> = {
  ACTIVE: 'Active',
  ROTATING: 'Rotating',
  EXPIRED: 'Expired',
  REVOKED: 'Revoked',
}

/**
 * When the key stops working: at its expiry, or at the end of the rotation's grace period if that is
 * sooner. Null if never.
 */
export function endOf({ status, expiresAt, graceUntil }: Key): string | null {
  if (status !== 'ROTATING' || graceUntil === null) return expiresAt
  return expiresAt !== null && Date.parse(expiresAt) < Date.parse(graceUntil)
    ? expiresAt
    : graceUntil
}

export function isActiveKey({ status }: Pick<Key, 'status'>): boolean {
  return status === 'ACTIVE' || status === 'ROTATING'
}
