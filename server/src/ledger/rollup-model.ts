/**
 * The fields whose distinct values are listed. A listed value takes about 200 bytes, and the list changes
 * with every event. A field with more than `VALUES_PER_FIELD_MAX` values is searched event by event instead.
 */
export const VALUE_FIELDS = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
  'projectId',
] as const
export type ValueField = (typeof VALUE_FIELDS)[number]
export const VALUES_PER_FIELD_MAX = 100_000

/**
 * The roll-up counts the events above `floorSeq`, up to and including `seenSeq`; the usage, up to `daySeq`.
 */
export type RollupHead = { floorSeq: number; seenSeq: number; daySeq: number }
