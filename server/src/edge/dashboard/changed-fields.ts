import { isDeepStrictEqual } from 'node:util'

export type ChangedFields<T> = { before: Partial<T>; after: Partial<T> }

/**
 * What the audit tells of a change: the fields that will be others, as they were and as they will be.
 * Null if nothing would change, so that nothing is written to the audit.
 */
export function changedFields<T extends object>(
  present: T,
  wanted: Partial<T>,
): ChangedFields<T> | null {
  const changed: ChangedFields<T> = { before: {}, after: {} }
  for (const field in wanted) {
    if (isDeepStrictEqual(present[field], wanted[field])) continue
    changed.before[field] = present[field]
    changed.after[field] = wanted[field]
  }
  return Object.keys(changed.after).length > 0 ? changed : null
}
