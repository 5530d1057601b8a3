import { hash } from 'node:crypto'
import { sql } from 'kysely'

const MARK = '/* keep plan */'

/**
 * Stands before a statement that is prepared once on each connection, so that PostgreSQL can keep its
 * plan. For a page of events planning over the partitions and their indexes took most of the time. Only
 * for statements of few spellings: every spelling is a plan in the memory of every connection. It still
 * plans by the values where that looks cheaper, so a join must be right for a table it knows nothing of.
 */
export const KEEP_PLAN = sql.raw(MARK)

const NAMES_MAX = 500
const names = new Map<string, string>()

/** The name that a marked statement is prepared under, the same for the same text; else null. */
export function keptPlanName(text: string): string | null {
  if (!text.includes(MARK)) return null
  const known = names.get(text)
  if (known !== undefined || names.size >= NAMES_MAX) return known ?? null
  const name = `kept-${hash('sha256', text, 'hex').slice(0, 16)}`
  names.set(text, name)
  return name
}
