import type { Webhook } from '../webhook-types.ts'

export type WebhookFilter = NonNullable<Webhook['filter']>

export const FILTER_LABELS: Record<keyof WebhookFilter, string> = {
  categories: 'Categories',
  actions: 'Actions',
  actorIds: 'Actor IDs',
  resourceTypes: 'Resource types',
}
export const FILTER_FIELDS = ['categories', 'actions', 'actorIds', 'resourceTypes'] as const

/** The filter as typed: one pattern per line. */
export type FilterDraft = Record<keyof WebhookFilter, string>

export function draftOf(filter: WebhookFilter | null): FilterDraft {
  const textOf = (field: keyof WebhookFilter) => (filter?.[field] ?? []).join('\n')
  return {
    categories: textOf('categories'),
    actions: textOf('actions'),
    actorIds: textOf('actorIds'),
    resourceTypes: textOf('resourceTypes'),
  }
}

/** Null if nothing is typed: then every event is sent. */
export function filterOf(draft: FilterDraft): WebhookFilter | null {
  const filter: WebhookFilter = {}
  for (const field of FILTER_FIELDS) {
    const lines = draft[field].split('\n').map((line) => line.trim())
    const patterns = [...new Set(lines)].filter((line) => line !== '')
    if (patterns.length > 0) filter[field] = patterns
  }
  return Object.keys(filter).length > 0 ? filter : null
}

/** For example "Actions: invoice.*, user.*". */
export function filterTexts(filter: WebhookFilter): string[] {
  return FILTER_FIELDS.flatMap((field) =>
    filter[field] ? [`${FILTER_LABELS[field]}: ${filter[field].join(', ')}`] : [],
  )
}
