export const KEYS_TABS = ['check', 'allowlist'] as const

/** The search parameters of the page: the tab, the key to check, and whether ended keys are shown. */
type KeysSearch = { tab?: (typeof KEYS_TABS)[number]; key?: string; ended?: true }

export function readKeysSearch(search: Record<string, unknown>): KeysSearch {
  const tab = KEYS_TABS.find((name) => name === search.tab)
  const key = typeof search.key === 'string' ? search.key : undefined
  const isEnded = String(search.ended) === 'true'
  return { ...(tab && { tab }), ...(key && { key }), ...(isEnded && { ended: true }) }
}
