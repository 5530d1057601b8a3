import { type RawBuilder, sql } from 'kysely'

/**
 * Hides a value from the planner. For an id that isn't in its statistics, PostgreSQL would expect a single
 * row, so an index that finds all rows of the workspace would look as good as the right one. For a hidden
 * value, it expects the average number of rows.
 */
export function hiddenFromPlanner(id: string): RawBuilder<string> {
  return sql`(select ${id}::uuid)`
}
