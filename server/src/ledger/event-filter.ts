import type { ProjectId } from '../platform/id.ts'
import type { EventFacets, SealedEvent } from './event.ts'
import type { Exclusion } from './exclusion.ts'
import { facetsOf } from './facets.ts'
import { foldCase } from './fold-case.ts'

/**
 * Which events are meant. One type for the API, exports, the dashboard and saved views, so that the
 * same filter always means the same events. Null: not filtered by.
 */
export type EventFilter = EventFacets & {
  /** Inclusive, by the event's own timestamp. */
  fromMs: number | null
  /** Exclusive. */
  toMs: number | null
  category: string | null
  action: string | null
  projectId: ProjectId | null
  /** 32 hex digits in lower case. */
  traceId: string | null
  /**
   * One of category, action, actor id, actor e-mail, resource type or resource id contains it; A to Z
   * match either case, and every other character itself.
   */
  text: string | null
  /** Those that have one of these values are not meant. As `orderExclusions` gives them. */
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

/** The fields that are compared for equality, in the order a cursor names them. */
export const EQUALITY_FIELDS = [...INDEXED_FIELDS, 'traceId'] as const

/** One text for one filter, whatever the order its parts were given in. */
export function filterText(filter: EventFilter): string {
  return JSON.stringify([
    filter.fromMs,
    filter.toMs,
    ...EQUALITY_FIELDS.map((name) => filter[name]),
    filter.text,
    // Only where there are some: a cursor of a filter without them stays what it was.
    ...(filter.excluded ?? []).map(({ field, value }) => [field, value]),
  ])
}

/**
 * The same as the conditions of `event-store.ts`, for an event that no database has. A caller that has
 * read the facets passes them, because parsing them costs more than everything else here.
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
  return filter.text === null || holdsText(values, filter.text)
}

/** Where a free text is looked for. */
export const SEARCHED_FIELDS = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
] as const satisfies readonly (keyof EventFilter)[]
export type SearchedField = (typeof SEARCHED_FIELDS)[number]

function holdsText(values: Record<SearchedField, string | null>, text: string): boolean {
  const folded = foldCase(text)
  return SEARCHED_FIELDS.some((name) => {
    const value = values[name]
    return value !== null && foldCase(value).includes(folded)
  })
}

const FACET_FIELDS = ['actorId', 'actorEmail', 'resourceType', 'resourceId'] as const
