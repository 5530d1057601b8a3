import { canonicalJson, canonicalString } from '../../ledger/canonical.ts'
import type { EventId, SealedEvent } from '../../ledger/event.ts'
import type { CompanyId, ProjectId, WorkspaceId } from '../../platform/id.ts'
import { formatUtcMs } from '../../platform/utc-time.ts'
import type { DeliveryId } from './delivery.ts'

/** What a receiver is told of an event. A test has no event, and the delivery's id in its place. */
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
 * The body of a delivery: the contract's fields, and none that is absent. The same event gives the
 * same bytes at every attempt, unless a part of it was erased in between.
 *
 * The parts are stored as the JSON they are sent as, so they are put in as they are.
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
  note: 'This is a test of your webhook. It is not an event, and no chain holds it.',
})

/**
 * The body of a test: the shape of an event, marked so that nobody takes it for one. It is stored
 * nowhere; each attempt makes it again from the delivery, and must make the same bytes.
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
