import type { SealedEvent } from '../../../ledger/event.ts'
import { readFields } from '../../../ledger/filter/facets.ts'
import { formatUtcMs } from '../../../platform/time/utc-time.ts'

/** RFC 4180: lines end with CR LF. */
export const CSV_HEADER =
  'id,seq,timestamp,receivedAt,companyId,workspaceId,projectId,category,action,actorId,actorEmail,actorRole,resourceType,resourceId,metadata,traceId,hash,prevHash\r\n'

export function csvRow(event: SealedEvent): string {
  const actor = readFields(event.actor)
  const resource = readFields(event.resource)
  // Ids, numbers, times and hashes never need quotes and never start with a formula sign.
  return (
    `${event.id},${event.seq},${formatUtcMs(event.timestampMs)},${formatUtcMs(event.receivedAtMs)}` +
    `,${event.companyId},${event.workspaceId},${event.projectId ?? ''}` +
    `,${csvCell(event.category)},${csvCell(event.action)}` +
    `,${csvCell(actor['id'])},${csvCell(actor['email'])},${csvCell(actor['role'])}` +
    `,${csvCell(resource['type'])},${csvCell(resource['id'])},${csvCell(event.metadata)}` +
    `,${event.traceId ?? ''},${event.hash},${event.prevHash}\r\n`
  )
}

/** Characters that start a formula in a spreadsheet. Some accept the full-width forms too. */
export const FORMULA_SIGNS = ['=', '+', '-', '@', '＝', '＋', '－', '＠'] as const
/**
 * Characters that a spreadsheet may trim before a sign: Unicode spaces, the zero-width space and the
 * byte order mark. A tab is a separator.
 */
export const BLANKS = [
  ' ',
  '\u00a0',
  '\u1680',
  ...Array.from({ length: 12 }, (_, nth) => String.fromCharCode(0x2000 + nth)),
  '\u202f',
  '\u205f',
  '\u3000',
  '\ufeff',
] as const

const SIGN = `[${FORMULA_SIGNS.join('').replace('-', '\\-')}]`
const BLANK = `[${BLANKS.join('')}]`
/**
 * Matches just before a sign that could start a cell. A spreadsheet that splits at `;` or tabs ignores
 * our quotes, so a cell can also start there. No two matches share a blank, so this takes linear time.
 */
const BEFORE_SIGN = new RegExp(`((?:^|[;\\t])${BLANK}*)(?=${SIGN})`, 'g')
/** A spreadsheet drops a leading apostrophe, and may skip a leading tab or line break. */
const RISKY_START = /^[\t\r\n']/
const NEEDS_QUOTES = /[",\r\n]/
/** Matches cells that need neither quotes nor an apostrophe, as most do, in one test. */
const PLAIN = new RegExp(
  `^[^${FORMULA_SIGNS.join('').replace('-', '\\-')}${BLANKS.join('')}\\t\\r\\n',";][^",\\r\\n;\\t]*$`,
)

/** Formats free text. Missing fields and empty text both become an empty cell. */
export function csvCell(text: string | null | undefined): string {
  if (text === null || text === undefined || text === '') return ''
  if (PLAIN.test(text)) return text
  const guarded = text.replace(BEFORE_SIGN, "$1'")
  const safe = RISKY_START.test(text) ? `'${guarded}` : guarded
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
