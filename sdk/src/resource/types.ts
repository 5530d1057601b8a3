import type { components, operations } from '../schema.ts'

type Schemas = components['schemas']
type QueryOf<Name extends keyof operations> = NonNullable<operations[Name]['parameters']['query']>

/** Who did it. */
export type Actor = Schemas['Actor']
/** What it was done to. */
export type Resource = Schemas['Resource']
/** An event to store. */
export type EventInput = Schemas['EventInput']
/** A stored event. */
export type Event = Schemas['Event']
export type EventPage = Schemas['EventPage']
/** The next events of a workspace. Pass `next` as `after` to continue. */
export type FeedPage = Schemas['EventFeed']
/** The result of one event of a batch: stored with an ID, or refused with a code. */
export type BatchResult = Schemas['StoredBatchItem'] | Schemas['RefusedBatchItem']
/** The filters of a list of events. `metadata` maps a path to the value, or values, that it must have. */
export type EventFilters = Omit<QueryOf<'listEvents'>, 'metadata'> & {
  metadata?: Record<string, string | readonly string[]>
}
export type EventProof = Schemas['EventProof']
export type Checkpoint = Schemas['Checkpoint']
export type ConsistencyProof = Schemas['ConsistencyProof']
/** The public keys of the service. A verifier must get its keys from a source that it trusts. */
export type ServiceKeys = Schemas['ServiceKeys']

export type KeyStatus = Schemas['KeyStatus']
export type Workspace = Schemas['WorkspaceInfo']
export type Project = Schemas['Project']
export type EventType = Schemas['EventType']
export type EventTypePage = Schemas['EventTypePage']
export type EventTypeFilters = QueryOf<'listEventTypes'>

export type Webhook = Schemas['Webhook']
export type WebhookInput = Schemas['WebhookInput']
/** A new webhook, with the only copy of its secret. */
export type CreatedWebhook = Schemas['CreatedWebhook']
export type WebhookChange = Schemas['WebhookChange']
export type WebhookStatusResult = Schemas['WebhookStatusResult']
export type SecretRotation = Schemas['SecretRotation']
/** The new secret of a webhook, which is not shown again. */
export type RotatedSecret = Schemas['RotatedSecret']
export type FinishedRotation = Schemas['FinishedRotation']
export type TestReceipt = Schemas['TestReceipt']
export type Delivery = Schemas['Delivery']
export type DeliveryPage = Schemas['DeliveryPage']
export type DeliveryWithAttempts = Schemas['DeliveryWithAttempts']
export type DeliveryFilters = QueryOf<'listWebhookDeliveries'>
export type RedeliveryWindow = Schemas['RedeliveryWindow']
export type RedeliveryResult = Schemas['RedeliveryResult']
/** The body of a webhook request. */
export type DeliveredEvent = Schemas['DeliveredEvent']

export type ExportInput = Schemas['ExportInput']
export type ExportJob = Schemas['ExportJob']
export type ExportPage = Schemas['ExportPage']
export type ExportFilters = QueryOf<'listExports'>
export type CreatedExport = Schemas['CreatedExport']
export type ExportStatusResult = Schemas['ExportStatusResult']
export type ExportPreflight = Schemas['ExportPreflight']
export type ExportManifest = Schemas['ExportManifest']
