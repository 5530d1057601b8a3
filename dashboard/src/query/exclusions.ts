import type { FilterField } from './filter-fields.ts'

/**
 * The fields whose values can be excluded, and that a filter can have several values of. A trace can be
 * searched for but not excluded, and only one at a time.
 */
export const EXCLUDABLE_FIELDS = [
  'category',
  'action',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
  'projectId',
] as const satisfies readonly FilterField[]
export type ExcludableField = (typeof EXCLUDABLE_FIELDS)[number]

export type Exclusion = { field: ExcludableField; value: string }

/** The limits of the service. */
export const EXCLUSIONS_MAX = 20
export const VALUES_PER_FIELD_MAX = 20
export const VALUES_FULL_TEXT = `A filter can have up to ${VALUES_PER_FIELD_MAX} values. Remove one first.`
export const EXCLUSIONS_FULL_TEXT = `You can exclude up to ${EXCLUSIONS_MAX} values. Remove one first.`

/** The notation of the service and the URL. The value can contain colons. */
export function exclusionText({ field, value }: Exclusion): string {
  return `${field}:${value}`
}

export function readExclusion(text: string): Exclusion | null {
  const colon = text.indexOf(':')
  const field = EXCLUDABLE_FIELDS.find((name) => name === text.slice(0, colon))
  return field && colon >= 0 ? { field, value: text.slice(colon + 1) } : null
}

export function isExcludable(field: string): field is ExcludableField {
  return EXCLUDABLE_FIELDS.some((name) => name === field)
}

/**
 * Returns what "Exclude" excludes where "Filter by this" would set these fields. For a resource it is
 * only the id, because excluding the type would exclude every other resource of that type.
 */
export function exclusionIn(patch: Partial<Record<string, unknown>>): Exclusion | null {
  for (const field of ['resourceId', ...EXCLUDABLE_FIELDS] as const) {
    const value = patch[field]
    if (typeof value === 'string' && value !== '') return { field, value }
  }
  return null
}
