import { useQuery } from '@tanstack/react-query'
import { client, unwrap } from '../../api/client.ts'
import type { paths } from '../../api/schema.d.ts'
import { usePages } from '../../parts/table/use-pages.ts'
import type { TYPE_FLAGS } from './event-types-search.ts'

const PAGE_TYPES = 100
const REFRESH_MS = 10_000

export type EventTypePage =
  paths['/dashboard/workspaces/{workspaceId}/event-types']['get']['responses'][200]['content']['application/json']
export type EventType = EventTypePage['data'][number]
export type ShapeChange = EventType['drift'][number]
export type MetadataKey = EventType['metadataKeys'][number]

/** The types of a workspace, optionally only those with a flag. */
export function useEventTypes(workspaceId: string, flag: (typeof TYPE_FLAGS)[number] | undefined) {
  return usePages(
    ['event-types', workspaceId, flag ?? 'all'],
    (cursorQuery): Promise<EventTypePage> => {
      const query = { limit: PAGE_TYPES, ...(flag && { flag }), ...cursorQuery }
      return readTypes(workspaceId, query)
    },
    { refetchMs: REFRESH_MS },
  )
}

/** One type. Null if the workspace has no such events. */
export function useEventType(workspaceId: string, category: string, action: string) {
  return useQuery({
    queryKey: ['event-types', workspaceId, 'one', category, action],
    queryFn: async () =>
      (await readTypes(workspaceId, { category, action, limit: 1 })).data[0] ?? null,
    refetchInterval: REFRESH_MS,
  })
}

type Query = NonNullable<
  paths['/dashboard/workspaces/{workspaceId}/event-types']['get']['parameters']['query']
>

function readTypes(workspaceId: string, query: Query): Promise<EventTypePage> {
  const params = { path: { workspaceId }, query }
  return unwrap(client.GET('/dashboard/workspaces/{workspaceId}/event-types', { params }))
}
