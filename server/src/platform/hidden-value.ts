import { type RawBuilder, sql } from 'kysely'

/**
 * A value that PostgreSQL doesn't know when it plans. Of a tenant that its statistics don't know it
 * would expect a single row, so an index that finds all rows of the tenant would look as good as the
 * right one. For a hidden value it expects the average number of rows.
 */
export function hiddenFromPlanner(id: string): RawBuilder<string> {
  return sql`(select ${id}::uuid)`
}
