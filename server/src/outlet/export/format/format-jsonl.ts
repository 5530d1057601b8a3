import type { SealedEvent } from '../../../ledger/event.ts'
import { provableRecordJson, stubRecordJson } from '../../../ledger/event-record.ts'

/** The same record that queries return, plus what an auditor needs to recompute the hash. */
export function jsonlRow(event: SealedEvent): string {
  return `${provableRecordJson(event)}\n`
}

/** The line of an event that the filters skip, in an export that proves that it is complete. */
export function jsonlStub(event: SealedEvent): string {
  return `${stubRecordJson(event)}\n`
}
