import assert from 'node:assert/strict'

/** What can be left out by its value, in the order a cursor names them. */
export const EXCLUDED_FIELDS = [
  'category',
  'action',
  'projectId',
  'actorId',
  'actorEmail',
  'resourceType',
  'resourceId',
] as const
export type ExcludedField = (typeof EXCLUDED_FIELDS)[number]

/** A value of an event. */
export type FieldValue = { field: ExcludedField; value: string }

/** Events that have this value are not meant. One that has no value there is: it has not this one. */
export type Exclusion = FieldValue

/** Of one filter. */
export const EXCLUSIONS_MAX = 20

export function isExcludedField(name: unknown): name is ExcludedField {
  return EXCLUDED_FIELDS.some((field) => field === name)
}

/** Each once and in one order, so that the same meaning is the same filter; null for none. */
export function orderExclusions(given: readonly Exclusion[]): readonly Exclusion[] | null {
  if (given.length === 0) return null
  assert(given.length <= EXCLUSIONS_MAX, `a filter leaves out ${EXCLUSIONS_MAX} values at most`)
  return [...valuesByField(given)].flatMap(([field, values]) =>
    values.map((value) => ({ field, value })),
  )
}

/** The values of each field, both in their order. */
export function valuesByField(given: readonly FieldValue[]): Map<ExcludedField, string[]> {
  const valuesOf = (field: ExcludedField) =>
    given.filter((one) => one.field === field).map(({ value }) => value)
  return new Map(
    EXCLUDED_FIELDS.map(
      (field) => [field, [...new Set(valuesOf(field))].toSorted()] as const,
    ).filter(([, values]) => values.length > 0),
  )
}
