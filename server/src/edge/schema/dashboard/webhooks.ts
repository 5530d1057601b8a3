import { Type } from 'typebox'
import { SIGNATURE_FINDINGS } from '../../../outlet/webhook/signature-check.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../common.ts'
import { DeliveryRecord, DeliveryWithAttempts, WebhookInput, WebhookRecord } from '../webhook.ts'

/** Includes the workspace, because the dashboard lists webhooks of several workspaces. */
export const DashboardWebhook = Type.Object(
  { ...WebhookRecord.properties, workspaceId: Uuid },
  STRICT,
)

export const DashboardWebhookList = Type.Object({ webhooks: Type.Array(DashboardWebhook) }, STRICT)

export const DashboardWebhookQuery = Type.Object({ workspaceId: Type.Optional(Uuid) }, STRICT)

export const DashboardWebhookInput = Type.Object(
  { ...WebhookInput.properties, workspaceId: Uuid },
  STRICT,
)

const Count = Type.Integer({ minimum: 0 })

export const WebhookHealth = Type.Object(
  {
    hours: Type.Array(
      Type.Object({ startsAt: DateTime, succeeded: Count, failed: Count, waiting: Count }, STRICT),
      { description: 'The last 24, the oldest first, by when deliveries were made.' },
    ),
    successRate: Nullable(Type.Number({ minimum: 0, maximum: 1 })),
    medianMs: Nullable(Type.Integer({ minimum: 0 })),
    p95Ms: Nullable(Type.Integer({ minimum: 0 })),
    open: { ...Count, description: 'Deliveries that are not final.' },
    isCut: Type.Boolean({ description: 'There were more deliveries than were looked at.' }),
  },
  STRICT,
)

export const DeliveryWithRequest = Type.Object({
  ...DeliveryWithAttempts.properties,
  requestBody: Nullable(
    Type.String({ description: 'What is sent, byte for byte; null when the event is archived.' }),
  ),
})

export const EventDeliveryQuery = Type.Object(
  { workspaceId: Uuid, eventSeq: Type.Integer({ minimum: 1 }) },
  STRICT,
)

export const EventDeliveryList = Type.Object({ deliveries: Type.Array(DeliveryRecord) }, STRICT)

const BODY_LENGTH_MAX = 200_000

export const SignatureQuestion = Type.Object(
  {
    body: Type.String({ maxLength: BODY_LENGTH_MAX, description: 'The body as it was received.' }),
    signature: Type.String({
      minLength: 1,
      maxLength: 2_000,
      description: 'The value of `x-service-signature` or `webhook-signature`.',
    }),
    id: Type.Optional(Type.String({ maxLength: 200, description: 'Of `webhook-id`.' })),
    timestamp: Type.Optional(
      Type.String({
        maxLength: 40,
        description: 'Of `webhook-timestamp`, or `x-service-timestamp`.',
      }),
    ),
    secret: Type.Optional(
      Type.String({ maxLength: 256, description: 'The one the receiver holds, to be compared.' }),
    ),
  },
  STRICT,
)

export const SignatureAnswer = Type.Object(
  {
    finding: Type.Enum([...SIGNATURE_FINDINGS]),
    explanation: Type.String({ description: 'What is wrong, and what to do.' }),
  },
  STRICT,
)
