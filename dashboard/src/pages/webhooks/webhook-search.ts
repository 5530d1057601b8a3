export const WEBHOOK_TABS = ['signature', 'settings'] as const
export const DELIVERY_STATUSES = [
  'PENDING',
  'SENDING',
  'SUCCEEDED',
  'RETRY_SCHEDULED',
  'FAILED',
] as const

/** The search parameters of the page: the tab, the status filter and the open delivery. */
type WebhookSearch = {
  tab?: (typeof WEBHOOK_TABS)[number]
  status?: (typeof DELIVERY_STATUSES)[number]
  delivery?: string
}

export function readWebhookSearch(search: Record<string, unknown>): WebhookSearch {
  const tab = WEBHOOK_TABS.find((name) => name === search.tab)
  const status = DELIVERY_STATUSES.find((name) => name === search.status)
  const delivery = typeof search.delivery === 'string' ? search.delivery : undefined
  return { ...(tab && { tab }), ...(status && { status }), ...(delivery && { delivery }) }
}
