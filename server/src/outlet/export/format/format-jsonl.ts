import type { SealedEvent } from '../../../ledger/event.ts'
import { provableRecordJson } from '../../../ledger/event-record.ts'

/** The same record that queries return, plus what an auditor needs to recompute the hash. */
export function jsonlRow(event: SealedEvent): string {
  return `${provableRecordJson(event)}\n`
}
