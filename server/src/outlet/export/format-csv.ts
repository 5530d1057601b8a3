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

/** A spreadsheet would take a text that begins like this for a formula, or drop its quote. */
const RISKY_START = /^[=+\-@\t\r\n']/
const NEEDS_QUOTES = /[",\r\n]/
/** Neither of the two, in one look: most cells are. */
const PLAIN = /^[^=+\-@\t\r\n',"][^",\r\n]*$/

/** Free text. An absent field is an empty cell; so is an empty text. */
export function csvCell(text: string | null | undefined): string {
  if (text === null || text === undefined || text === '') return ''
  if (PLAIN.test(text)) return text
  const safe = RISKY_START.test(text) ? `'${text}` : text
  return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
