import { type RawBuilder, sql } from 'kysely'

/**
 * A value that PostgreSQL doesn't know when it plans. For an id that isn't in its statistics, it
 * would expect a single row, so an index that finds all rows of the workspace would look as good as the
 * right one. For a hidden value it expects the average number of rows.
 */
export function hiddenFromPlanner(id: string): RawBuilder<string> {
  return sql`(select ${id}::uuid)`
}
