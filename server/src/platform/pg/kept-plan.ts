import { hash } from 'node:crypto'
import { sql } from 'kysely'

const MARK = '/* keep plan */'

/**
 * A prefix for a statement that is prepared once per connection, so that PostgreSQL can keep its
 * plan. For a page of events, planning over the partitions and their indexes took most of the time.
 * Use it only for statements with few variants: each variant is a plan in the memory of each
 * connection. PostgreSQL still plans for specific values where that looks cheaper, so a join must
 * work well for a table without statistics.
 */
export const KEEP_PLAN = sql.raw(MARK)

const NAMES_MAX = 500
const names = new Map<string, string>()

/**
 * The name for preparing a marked statement, derived from its text. Null for other
 * statements and above `NAMES_MAX`.
 */
export function keptPlanName(text: string): string | null {
  if (!text.includes(MARK)) return null
  const known = names.get(text)
  if (known !== undefined || names.size >= NAMES_MAX) return known ?? null
  const name = `kept-${hash('sha256', text, 'hex').slice(0, 16)}`
  names.set(text, name)
  return name
}
