import { canonicalString } from './canonical.ts'
import type { SealedEvent } from './event.ts'
import { formatUtcMs } from '../platform/time/utc-time.ts'

/**
 * An event as JSON, as queries return it. The parts are stored as JSON, so they are inserted unchanged:
 * parsing and serializing them again would take most of the time of a page.
 */
export function eventRecordJson(event: SealedEvent): string {
  return `${openRecord(event)}}`
}

/** The record, plus what an auditor needs to recompute the hash. */
export function provableRecordJson(event: SealedEvent): string {
  return `${openRecord(event)},"sealed":${event.sealed},"salts":${event.salts}}`
}

/** Without the closing brace, so that the text is concatenated only once. */
function openRecord(event: SealedEvent): string {
  return (
    `{"id":"${event.id}","seq":${event.seq}` +
    `,"timestamp":"${formatUtcMs(event.timestampMs)}","receivedAt":"${formatUtcMs(event.receivedAtMs)}"` +
    `,"companyId":"${event.companyId}","workspaceId":"${event.workspaceId}"` +
    `,"projectId":${event.projectId === null ? 'null' : `"${event.projectId}"`}` +
    `,"category":${canonicalString(event.category)},"action":${canonicalString(event.action)}` +
    `,"actor":${event.actor ?? 'null'},"resource":${event.resource ?? 'null'}` +
    `,"metadata":${event.metadata ?? 'null'}` +
    `,"traceId":${event.traceId === null ? 'null' : `"${event.traceId}"`}` +
    `,"hash":"${event.hash}","prevHash":"${event.prevHash}"`
  )
}
