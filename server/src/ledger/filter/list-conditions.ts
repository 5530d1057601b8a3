/**
 * Conditions that a query of the API can have in addition to its `EventFilter`, which exports and saved
 * views store. Null means no condition.
 */
export type ListConditions = {
  /** Events of any of these categories. A single one belongs to the filter, because it has an index. */
  categories: readonly string[] | null
  actions: readonly string[] | null
  /** Both inclusive. */
  seqFrom: number | null
  seqTo: number | null
}

export const NO_CONDITIONS: ListConditions = {
  categories: null,
  actions: null,
  seqFrom: null,
  seqTo: null,
}

/** The maximum number of values per field. */
export const LISTED_VALUES_MAX = 20

/** The conditions as text, for cursors. Empty without conditions, so that existing cursors stay valid. */
export function conditionsText(conditions: ListConditions): string {
  const { categories, actions, seqFrom, seqTo } = conditions
  const values = [categories, actions, seqFrom, seqTo]
  return values.every((value) => value === null) ? '' : JSON.stringify(values)
}
