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

/**
 * The names that `--filter` accepts, besides those of metadata. The feed has no filters, so `tail` compares the
 * fields itself.
 */
export const FILTER_NAMES = {
  list: [...FIELD_NAMES, ...SEARCHES, 'seqFrom', 'seqTo'],
  export: [...FIELD_NAMES, ...SEARCHES],
  tail: FIELD_NAMES,
} as const

/** Every command also filters by metadata. The path of a field follows. */
export const METADATA_FILTER_PREFIX = 'metadata.'

/** The names as help and errors list them. */
export function describeFilterNames(names: readonly string[]): string {
  return [...names, `${METADATA_FILTER_PREFIX}PATH`].join(', ')
}
