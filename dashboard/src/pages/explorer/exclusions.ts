import type { FilterField } from './explorer-search.ts'

/** Of which a value can be left out; a trace is looked for, never left out. */
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

/** As many as the service takes. */
export const EXCLUSIONS_MAX = 20
export const FULL_WORDS = `${EXCLUSIONS_MAX} values are excluded already: take one away first.`

/** As the service and the address spell it; the value may hold colons. */
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
 * What "exclude" leaves out where "filter by this" would ask for these fields. Of a resource its id
 * alone: to leave out its type as well would leave out every other resource of that type.
 */
export function exclusionIn(patch: Partial<Record<string, unknown>>): Exclusion | null {
  for (const field of ['resourceId', ...EXCLUDABLE_FIELDS] as const) {
    const value = patch[field]
    if (typeof value === 'string' && value !== '') return { field, value }
  }
  return null
}
