import type { ProjectId } from '../platform/id.ts'
import type { EventFacets, SealedEvent } from './event.ts'
import type { Exclusion } from './exclusion.ts'
import { facetsOf } from './facets.ts'
import { foldCase } from './fold-case.ts'

/**
 * Selects events. The API, exports, the dashboard and saved views share this type, so that the same filter
 * always selects the same events. Null means that the field is not filtered.
 */
export type EventFilter = EventFacets & {
  /** Inclusive, by the event's own timestamp. */
  fromMs: number | null
  /** Exclusive. */
  toMs: number | null
  category: string | null
  action: string | null
  projectId: ProjectId | null
  /** 32 lowercase hex digits. */
  traceId: string | null
  /**
   * Matches if the category, action, actor id, actor email, resource type or resource id contains this
   * text. The letters A to Z match either case; every other character matches only itself.
   */
  text: string | null
  /** Events that have one of these values don't match. Ordered by `orderExclusions`. */
  excluded: readonly Exclusion[] | null
}

export const NO_FILTER: EventFilter = {
  fromMs: null,
  toMs: null,
  category: null,
  action: null,
  projectId: null,
  actorId: null,
  actorEmail: null,
  resourceType: null,
  resourceId: null,
  traceId: null,
  text: null,
  excluded: null,
}

/** The fields that are compared for equality and have an index. */
export const INDEXED_FIELDS = [
  'category',
  'action',
  'projectId',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
] as const satisfies readonly (keyof EventFilter)[]
export type IndexedField = (typeof INDEXED_FIELDS)[number]

/** The fields that are compared for equality, in the order that cursors use. */
export const EQUALITY_FIELDS = [...INDEXED_FIELDS, 'traceId'] as const

/** The same text for the same filter, whatever order its parts were given in. */
export function filterText(filter: EventFilter): string {
  return JSON.stringify([
    filter.fromMs,
    filter.toMs,
    ...EQUALITY_FIELDS.map((name) => filter[name]),
    filter.text,
    // Nothing is added without exclusions, so that existing cursors stay valid.
    ...(filter.excluded ?? []).map(({ field, value }) => [field, value]),
  ])
}

/**
 * Equivalent to the conditions of `event-store.ts`, for an event that is not in the database. Callers that
 * already have the facets pass them, because parsing them costs more than everything else here.
 */
export function matchesFilter(
  event: SealedEvent,
  filter: EventFilter,
  facets: EventFacets | null = null,
): boolean {
  if (filter.fromMs !== null && event.timestampMs < filter.fromMs) return false
  if (filter.toMs !== null && event.timestampMs >= filter.toMs) return false
  if (filter.category !== null && event.category !== filter.category) return false
  if (filter.action !== null && event.action !== filter.action) return false
  if (filter.projectId !== null && event.projectId !== filter.projectId) return false
  if (filter.traceId !== null && event.traceId !== filter.traceId) return false
  const wanted = FACET_FIELDS.filter((name) => filter[name] !== null)
  if (wanted.length === 0 && filter.text === null && filter.excluded === null) return true
  const { category, action, projectId, actor, resource } = event
  const values = { category, action, projectId, ...(facets ?? facetsOf(actor, resource)) }
  if (!wanted.every((name) => values[name] === filter[name])) return false
  if (filter.excluded?.some(({ field, value }) => values[field] === value)) return false
  return filter.text === null || containsText(values, filter.text)
}

/** The fields that a free-text search covers. */
export const SEARCHED_FIELDS = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
] as const satisfies readonly (keyof EventFilter)[]
export type SearchedField = (typeof SEARCHED_FIELDS)[number]

function containsText(values: Record<SearchedField, string | null>, text: string): boolean {
  const folded = foldCase(text)
  return SEARCHED_FIELDS.some((name) => {
    const value = values[name]
    return value !== null && foldCase(value).includes(folded)
  })
}

const FACET_FIELDS = ['actorId', 'actorEmail', 'resourceType', 'resourceId'] as const
