/** The fields that every command can filter by. */
const FIELD_NAMES = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'actorRole',
  'resourceType',
  'resourceId',
  'projectId',
  'traceId',
] as const
export type FilterField = (typeof FIELD_NAMES)[number]

const SEARCHES = ['q', 'hasMetadata', 'receivedFrom', 'receivedTo'] as const

/** The names that `--filter` accepts. The feed has no filters, so `tail` compares the fields itself. */
export const FILTER_NAMES = {
  list: [...FIELD_NAMES, 'metadata.PATH', ...SEARCHES, 'seqFrom', 'seqTo'],
  export: [...FIELD_NAMES, 'metadata.PATH', ...SEARCHES],
  tail: [...FIELD_NAMES, 'metadata.PATH'],
} as const
