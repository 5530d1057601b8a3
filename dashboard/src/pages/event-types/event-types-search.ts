export const TYPE_FLAGS = ['NEW', 'DRIFT'] as const

/** The search parameters of the page: the flag to filter by, and the open type with its workspace. */
export type EventTypesSearch = {
  flag?: (typeof TYPE_FLAGS)[number]
  workspaceId?: string
  category?: string
  action?: string
}

export function readEventTypesSearch(search: Record<string, unknown>): EventTypesSearch {
  const flag = TYPE_FLAGS.find((name) => name === search.flag)
  const { workspaceId, category, action } = search
  const isOpen = typeof category === 'string' && typeof action === 'string'
  return {
    ...(flag && { flag }),
    ...(typeof workspaceId === 'string' && { workspaceId }),
    ...(isOpen && { category, action }),
  }
}
