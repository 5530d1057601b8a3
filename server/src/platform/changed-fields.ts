import { isDeepStrictEqual } from 'node:util'

type ChangedFields<T> = { before: Partial<T>; after: Partial<T> }

/**
 * Returns the fields that a change modifies, before and after, for the audit log. Returns null if nothing
 * changes, so that no entry is written.
 */
export function changedFields<T extends object>(
  current: T,
  changes: Partial<T>,
): ChangedFields<T> | null {
  const changed: ChangedFields<T> = { before: {}, after: {} }
  for (const field in changes) {
    if (isDeepStrictEqual(current[field], changes[field])) continue
    changed.before[field] = current[field]
    changed.after[field] = changes[field]
  }
  return Object.keys(changed.after).length > 0 ? changed : null
}
