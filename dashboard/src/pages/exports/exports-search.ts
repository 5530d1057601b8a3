export const EXPORT_STATUSES = ['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED'] as const
export type ExportStatus = (typeof EXPORT_STATUSES)[number]

/** The search parameters of the page: the tab, the status filter and the highlighted export. */
type ExportsSearch = { tab?: 'templates'; status?: ExportStatus; job?: string }

export function readExportsSearch(search: Record<string, unknown>): ExportsSearch {
  const status = EXPORT_STATUSES.find((name) => name === search.status)
  const job = typeof search.job === 'string' ? search.job : undefined
  return {
    ...(search.tab === 'templates' && { tab: 'templates' as const }),
    ...(status && { status }),
    ...(job && { job }),
  }
}
