import type { ProjectId } from '../platform/id.ts'
import type { EventFacets } from './event.ts'

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
}

/** The fields that are compared for equality, in the order a cursor names them. */
export const EQUALITY_FIELDS = [
  'category',
  'action',
  'projectId',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
] as const satisfies readonly (keyof EventFilter)[]

/** One text for one filter, whatever the order its parts were given in. */
export function filterText(filter: EventFilter): string {
  return JSON.stringify([
    filter.fromMs,
    filter.toMs,
    ...EQUALITY_FIELDS.map((name) => filter[name]),
  ])
}
