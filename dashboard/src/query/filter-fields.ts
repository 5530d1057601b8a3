/** The fields to filter by. */
export const FILTER_FIELDS = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
  'projectId',
  'traceId',
] as const
export type FilterField = (typeof FILTER_FIELDS)[number]
