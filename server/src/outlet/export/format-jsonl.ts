import type { SealedEvent } from '../../ledger/event.ts'
import { eventRecordJson } from '../../ledger/event-record.ts'

/** The record of the query, with what an auditor needs to recompute the hash. */
export function jsonlRow(event: SealedEvent): string {
  const record = eventRecordJson(event)
  return `${record.slice(0, -1)},"sealed":${event.sealed},"salts":${event.salts}}\n`
}
