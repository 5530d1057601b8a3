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

/** An event without its parts: only what its hash covers, and the hash. */
export function stubRecordJson(event: SealedEvent): string {
  return (
    `{"stub":true,${coreFields(event)},"traceId":${textOrNull(event.traceId)}` +
    `,"sealed":${event.sealed},"prevHash":"${event.prevHash}","hash":"${event.hash}"}`
  )
}

/** Without the closing brace, so that the text is concatenated only once. */
function openRecord(event: SealedEvent): string {
  return (
    `{${coreFields(event)},"actor":${event.actor ?? 'null'},"resource":${event.resource ?? 'null'}` +
    `,"metadata":${event.metadata ?? 'null'},"traceId":${textOrNull(event.traceId)}` +
    `,"hash":"${event.hash}","prevHash":"${event.prevHash}"`
  )
}

/** The fields that rows and stubs start with. */
function coreFields(event: SealedEvent): string {
  return (
    `"id":"${event.id}","seq":${event.seq}` +
    `,"timestamp":"${formatUtcMs(event.timestampMs)}","receivedAt":"${formatUtcMs(event.receivedAtMs)}"` +
    `,"companyId":"${event.companyId}","workspaceId":"${event.workspaceId}"` +
    `,"projectId":${textOrNull(event.projectId)}` +
    `,"category":${canonicalString(event.category)},"action":${canonicalString(event.action)}`
  )
}

/** For ids, which need no escapes. */
function textOrNull(id: string | null): string {
  return id === null ? 'null' : `"${id}"`
}
