import { canonicalString } from './canonical.ts'
import type { SealedEvent } from './event.ts'
import { formatUtcMs } from '../platform/utc-time.ts'

/**
 * An event as the query shows it, as JSON text. The parts are stored as the JSON they are answered
 * with, so they are put in as they are: parsing them to print them again would cost most of a page.
 */
export function eventRecordJson(event: SealedEvent): string {
  return `${openRecord(event)}}`
}

/** The record and what an auditor needs beside it to recompute the hash. */
export function provableRecordJson(event: SealedEvent): string {
  return `${openRecord(event)},"sealed":${event.sealed},"salts":${event.salts}}`
}

/** Without the last brace: texts are put together once, at the end. */
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
