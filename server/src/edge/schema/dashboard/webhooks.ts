import { Type } from 'typebox'
import { RETRYABLE_STATUSES } from '../../../outlet/webhook/delivery/retry-store.ts'
import { SIGNATURE_FINDINGS } from '../../../outlet/webhook/secret/signature-check.ts'
import { HEALTH_STATES } from '../../../outlet/webhook/webhook-state.ts'
import { CursorQuery, DateTime, NextCursor, Nullable, STRICT, Uuid } from '../common.ts'
import { named } from '../named.ts'
import {
  DeliveryErrorClass,
  DeliveryRecord,
  DeliveryWithAttempts,
  WebhookInput,
  WebhookRecord,
} from '../webhook.ts'

const WorkspaceId = { ...Uuid, description: 'The ID of the workspace.' }

/** Includes the workspace, because the dashboard lists webhooks of several workspaces. */
export const DashboardWebhook = named(
  'DashboardWebhook',
  Type.Object(
    { ...WebhookRecord.properties, workspaceId: WorkspaceId },
    { ...STRICT, description: 'A webhook.' },
  ),
)

export const DashboardWebhookList = Type.Object(
  {
    webhooks: Type.Array(DashboardWebhook, { description: 'The webhooks.' }),
    nextCursor: NextCursor,
  },
  { ...STRICT, description: 'The webhooks that the member can see.' },
)

export const DashboardWebhookQuery = Type.Object(
  {
    workspaceId: Type.Optional({ ...Uuid, description: 'Only webhooks of this workspace.' }),
    cursor: Type.Optional(CursorQuery),
  },
  STRICT,
)

export const DashboardWebhookInput = Type.Object(
  { ...WebhookInput.properties, workspaceId: WorkspaceId },
  { ...STRICT, description: 'The settings of the new webhook.' },
)

const Count = Type.Integer({ minimum: 0 })

const DeliveryCounts = Type.Object(
  {
    succeeded: { ...Count, description: 'Deliveries that succeeded.' },
    failed: { ...Count, description: 'Deliveries that failed.' },
    retrying: { ...Count, description: 'Deliveries that wait for a retry.' },
  },
  STRICT,
)

export const WebhookHealth = Type.Object(
  {
    state: Type.Enum([...HEALTH_STATES], {
      description: 'How well the webhook delivers, by the rates and the delay below.',
    }),
    lastHour: { ...DeliveryCounts, description: 'The deliveries created in the last hour.' },
    lastDay: { ...DeliveryCounts, description: 'The deliveries created in the last 24 hours.' },
    overdueSince: Nullable({
      ...DateTime,
      description: 'When the oldest delivery that should have been sent by now was due.',
    }),
    hours: Type.Array(
      Type.Object(
        {
          startsAt: { ...DateTime, description: 'The start of the hour.' },
          succeeded: { ...Count, description: 'Deliveries that succeeded.' },
          failed: { ...Count, description: 'Deliveries that failed.' },
          waiting: { ...Count, description: 'Deliveries that are not final.' },
        },
        STRICT,
      ),
      {
        description:
          'The last 24 hours, oldest first. Deliveries are counted by the time of their creation.',
      },
    ),
    successRate: Nullable(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description: 'The share of final deliveries that succeeded.',
      }),
    ),
    medianMs: Nullable(
      Type.Integer({ minimum: 0, description: 'The median response time, in milliseconds.' }),
    ),
    p95Ms: Nullable(
      Type.Integer({
        minimum: 0,
        description: 'The 95th percentile of the response time, in milliseconds.',
      }),
    ),
    open: { ...Count, description: 'Deliveries that are not final.' },
    isCut: Type.Boolean({ description: 'Whether there were too many deliveries to count all.' }),
  },
  { ...STRICT, description: 'How the deliveries of the last 24 hours went.' },
)

export const DeliveryWithRequest = Type.Object(
  {
    ...DeliveryWithAttempts.properties,
    requestBody: Nullable(
      Type.String({
        description: 'The exact request body. Null if the event is archived.',
      }),
    ),
  },
  { description: 'A delivery with its attempts and its request body.' },
)

export const EventDeliveryQuery = Type.Object(
  {
    workspaceId: WorkspaceId,
    eventSeq: Type.Integer({ minimum: 1, description: 'The sequence number of the event.' }),
  },
  STRICT,
)

export const EventDeliveryList = Type.Object(
  { deliveries: Type.Array(DeliveryRecord, { description: 'The deliveries.' }) },
  { ...STRICT, description: 'The deliveries of an event.' },
)

const DeliveredEvent = Type.Object(
  {
    category: Type.String({ description: 'The category of the event.' }),
    action: Type.String({ description: 'The action of the event.' }),
    actorId: Nullable(Type.String({ description: 'The ID of the actor.' })),
    actorEmail: Nullable(Type.String({ description: 'The email address of the actor.' })),
  },
  { ...STRICT, description: 'The event of a delivery.' },
)

export const DashboardDeliveryPage = Type.Object(
  {
    data: Type.Array(
      Type.Object({
        ...DeliveryRecord.properties,
        event: Nullable({
          ...DeliveredEvent,
          description: 'The event. Null for a test, and if the event is archived.',
        }),
      }),
      { description: 'The deliveries.' },
    ),
    nextCursor: NextCursor,
  },
  { ...STRICT, description: 'A page of deliveries.' },
)

const RetryableStatus = Type.Enum([...RETRYABLE_STATUSES], {
  description: 'FAILED: Annals gave up. RETRY_SCHEDULED: waiting for the next attempt.',
})
const SEQUENCE = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }
const ThroughSequence = Type.Integer({
  ...SEQUENCE,
  description: 'Deliveries after this sequence number are left alone.',
})
const PreviewedAt = {
  ...DateTime,
  description: 'Deliveries that changed after this time are left alone.',
}

export const RetryPreview = Type.Object(
  {
    throughSequence: ThroughSequence,
    previewedAt: PreviewedAt,
    groups: Type.Array(
      Type.Object(
        {
          status: RetryableStatus,
          responseStatus: Nullable(
            Type.Integer({ description: 'The HTTP status of the last response. Null if none.' }),
          ),
          errorClass: Nullable(DeliveryErrorClass),
          count: { ...Count, description: 'How many deliveries.' },
        },
        STRICT,
      ),
      { description: 'The deliveries by status and last response, the largest group first.' },
    ),
    isCut: Type.Boolean({
      description: 'Whether there may be more: at most 100,000 per status are counted.',
    }),
  },
  { ...STRICT, description: 'What a retry would send.' },
)

export const RetryInput = Type.Object(
  {
    status: RetryableStatus,
    throughSequence: { ...ThroughSequence, description: '`throughSequence` of the preview.' },
    previewedAt: { ...PreviewedAt, description: '`previewedAt` of the preview.' },
    afterSequence: Type.Optional(
      Type.Integer({ ...SEQUENCE, description: '`continueAfter` of the previous request.' }),
    ),
  },
  { ...STRICT, description: 'Which deliveries to retry.' },
)

export const RetryResult = Type.Object(
  {
    queued: { ...Count, description: 'Deliveries that will be sent now.' },
    archived: { ...Count, description: 'Deliveries that can’t be sent: their event is archived.' },
    continueAfter: Nullable(
      Type.Integer({
        minimum: 0,
        description: 'The `afterSequence` of the next request. Null if there is nothing left.',
      }),
    ),
  },
  { ...STRICT, description: 'What will be sent.' },
)

const BODY_LENGTH_MAX = 200_000

export const SignatureCheckInput = Type.Object(
  {
    body: Type.String({
      maxLength: BODY_LENGTH_MAX,
      description: 'The body as the receiver got it.',
    }),
    signature: Type.String({
      minLength: 1,
      maxLength: 2_000,
      description: 'The value of `x-service-signature` or `webhook-signature`.',
    }),
    id: Type.Optional(Type.String({ maxLength: 200, description: 'The value of `webhook-id`.' })),
    timestamp: Type.Optional(
      Type.String({
        maxLength: 40,
        description: 'The value of `webhook-timestamp` or `x-service-timestamp`.',
      }),
    ),
    secret: Type.Optional(
      Type.String({
        maxLength: 256,
        description: 'The secret that the receiver uses, to compare.',
      }),
    ),
  },
  { ...STRICT, description: 'A request that the receiver got.' },
)

export const SignatureCheckResult = Type.Object(
  {
    finding: Type.Enum([...SIGNATURE_FINDINGS], { description: 'The result.' }),
    explanation: Type.String({ description: 'What is wrong, and what to do.' }),
  },
  { ...STRICT, description: 'Whether the signature is right.' },
)
