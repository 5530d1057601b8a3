import { isDeepStrictEqual } from 'node:util'

export type ChangedFields<T> = { before: Partial<T>; after: Partial<T> }

/**
 * What the audit tells of a change: the fields that will be others, as they were and as they will be.
 * Null when a wish is what there is already; then nothing is changed and nothing is written down.
 */
export function changedFields<T extends object>(
  present: T,
  wish: Partial<T>,
): ChangedFields<T> | null {
  const changed: ChangedFields<T> = { before: {}, after: {} }
  for (const field in wish) {
    if (isDeepStrictEqual(present[field], wish[field])) continue
    changed.before[field] = present[field]
    changed.after[field] = wish[field]
  }
  return Object.keys(changed.after).length > 0 ? changed : null
}
