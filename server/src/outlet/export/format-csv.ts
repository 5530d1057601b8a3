import type { SealedEvent } from '../../ledger/event.ts'
import { readFields } from '../../ledger/facets.ts'
import { formatUtcMs } from '../../platform/utc-time.ts'

/** RFC 4180, lines end with CR LF. */
export const CSV_HEADER =
  'id,seq,timestamp,receivedAt,companyId,workspaceId,projectId,category,action,actorId,actorEmail,actorRole,resourceType,resourceId,metadata,traceId,hash,prevHash\r\n'

export function csvRow(event: SealedEvent): string {
  const actor = readFields(event.actor)
  const resource = readFields(event.resource)
  // Ids, numbers, times and hashes hold nothing that needs quotes, and begin with no sign.
  return (
    `${event.id},${event.seq},${formatUtcMs(event.timestampMs)},${formatUtcMs(event.receivedAtMs)}` +
    `,${event.companyId},${event.workspaceId},${event.projectId ?? ''}` +
    `,${csvCell(event.category)},${csvCell(event.action)}` +
    `,${csvCell(actor['id'])},${csvCell(actor['email'])},${csvCell(actor['role'])}` +
    `,${csvCell(resource['type'])},${csvCell(resource['id'])},${csvCell(event.metadata)}` +
    `,${event.traceId ?? ''},${event.hash},${event.prevHash}\r\n`
  )
}

/** What a spreadsheet takes for the start of a formula. Some treat the full-width forms alike. */
export const FORMULA_SIGNS = ['=', '+', '-', '@', '＝', '＋', '－', '＠'] as const
/**
 * What a spreadsheet may trim before it looks for a sign: the spaces of Unicode, the zero-width space
 * and the byte order mark. A tab is a separator.
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
 * Just before a sign that could start a cell: of this file, or of one that a spreadsheet makes when it
 * splits at `;` or tabs, which ignores our quotes. No two matches share a blank, so it takes linear time.
 */
const BEFORE_SIGN = new RegExp(`((?:^|[;\\t])${BLANK}*)(?=${SIGN})`, 'g')
/** A spreadsheet drops an apostrophe at the start, and may skip a tab or a line break. */
const RISKY_START = /^[\t\r\n']/
const NEEDS_QUOTES = /[",\r\n]/
/** A cell that needs neither a quote nor an apostrophe, in one test: most cells pass. */
const PLAIN = new RegExp(
  `^[^${FORMULA_SIGNS.join('').replace('-', '\\-')}${BLANKS.join('')}\\t\\r\\n',";][^",\\r\\n;\\t]*$`,
)

/** Free text. An absent field is an empty cell; so is an empty text. */
export function csvCell(text: string | null | undefined): string {
  if (text === null || text === undefined || text === '') return ''
  if (PLAIN.test(text)) return text
  const guarded = text.replace(BEFORE_SIGN, "$1'")
  const safe = RISKY_START.test(text) ? `'${guarded}` : guarded
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
