import assert from 'node:assert/strict'

/** The fields whose values can be excluded, in the order that cursors use. */
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

/** A field of an event and a value it can have. The fields that can be excluded can also be filtered by. */
export type FieldValue = { field: ExcludedField; value: string }

/** Excludes events that have this value. An event without a value in the field is not excluded. */
export type Exclusion = FieldValue

/** The maximum per filter. */
export const EXCLUSIONS_MAX = 20

export function isExcludedField(name: unknown): name is ExcludedField {
  return EXCLUDED_FIELDS.some((field) => field === name)
}

/**
 * Sorts and deduplicates exclusions, so that equivalent filters are equal. Returns null if there are none.
 */
export function orderExclusions(given: readonly Exclusion[]): readonly Exclusion[] | null {
  if (given.length === 0) return null
  assert(given.length <= EXCLUSIONS_MAX, `a filter leaves out ${EXCLUSIONS_MAX} values at most`)
  return orderValues(given)
}

/** Sorts and deduplicates values, in the order of `valuesByField`. */
export function orderValues(given: readonly FieldValue[]): FieldValue[] {
  return [...valuesByField(given)].flatMap(([field, values]) =>
    values.map((value) => ({ field, value })),
  )
}

/** The distinct values of each field. Fields are in the order of `EXCLUDED_FIELDS`, values are sorted. */
export function valuesByField(given: readonly FieldValue[]): Map<ExcludedField, string[]> {
  const valuesOf = (field: ExcludedField) =>
    given.filter((one) => one.field === field).map(({ value }) => value)
  return new Map(
    EXCLUDED_FIELDS.map(
      (field) => [field, [...new Set(valuesOf(field))].toSorted()] as const,
    ).filter(([, values]) => values.length > 0),
  )
}
