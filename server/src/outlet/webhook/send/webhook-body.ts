import { canonicalJson, canonicalString } from '../../../ledger/canonical.ts'
import type { EventId, SealedEvent } from '../../../ledger/event.ts'
import type { CompanyId, ProjectId, WorkspaceId } from '../../../platform/id.ts'
import { formatUtcMs } from '../../../platform/time/utc-time.ts'
import type { DeliveryId } from '../delivery/delivery.ts'

/**
 * The fields of an event that are sent to a receiver. A test uses the delivery's id instead of an event's.
 */
type DeliveredEvent = { id: EventId | DeliveryId } & Pick<
  SealedEvent,
  | 'timestampMs'
  | 'companyId'
  | 'workspaceId'
  | 'projectId'
  | 'category'
  | 'action'
  | 'actor'
  | 'resource'
  | 'metadata'
  | 'traceId'
  | 'hash'
  | 'prevHash'
>

/**
 * The body of a delivery: the fields of the API contract, without those that are null. The same event
 * produces the same bytes at every attempt, unless a part of it was erased in between.
 *
 * Actor, resource and metadata are stored as JSON, so they are inserted unchanged.
 */
export function webhookBody(event: DeliveredEvent): string {
  return (
    `{"id":"${event.id}","timestamp":"${formatUtcMs(event.timestampMs)}"` +
    `,"companyId":"${event.companyId}","workspaceId":"${event.workspaceId}"` +
    (event.projectId === null ? '' : `,"projectId":"${event.projectId}"`) +
    `,"category":${canonicalString(event.category)},"action":${canonicalString(event.action)}` +
    (event.actor === null ? '' : `,"actor":${event.actor}`) +
    (event.resource === null ? '' : `,"resource":${event.resource}`) +
    (event.metadata === null ? '' : `,"metadata":${event.metadata}`) +
    (event.traceId === null ? '' : `,"traceId":"${event.traceId}"`) +
    `,"hash":"${event.hash}","prevHash":"${event.prevHash}"}`
  )
}

const NO_HASH = '0'.repeat(64)
const TEST_METADATA = canonicalJson({
  test: true,
  note: 'This is a test of your webhook. It is not an event and is not part of any chain.',
})

/**
 * The body of a test: shaped like an event, but marked so that it can't be mistaken for one. It isn't stored:
 * each attempt builds it from the delivery, and must produce the same bytes.
 */
export function testBody(delivery: {
  deliveryId: DeliveryId
  companyId: CompanyId
  workspaceId: WorkspaceId
  projectId: ProjectId | null
  createdAtMs: number
}): string {
  return webhookBody({
    id: delivery.deliveryId,
    timestampMs: delivery.createdAtMs,
    companyId: delivery.companyId,
    workspaceId: delivery.workspaceId,
    projectId: delivery.projectId,
    category: 'webhook',
    action: 'webhook.test',
    actor: null,
    resource: null,
    metadata: TEST_METADATA,
    traceId: null,
    hash: NO_HASH,
    prevHash: NO_HASH,
  })
}
