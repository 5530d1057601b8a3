import { Type } from 'typebox'
import { DELIVERY_STATUSES, ERROR_CLASSES } from '../../outlet/webhook/delivery.ts'
import { DESTINATION_CHARACTERS_MAX } from '../../outlet/webhook/destination.ts'
import { WEBHOOK_EVENTS, WEBHOOK_STATUSES } from '../../outlet/webhook/webhook.ts'
import { DateTime, KEY_ERRORS, Nullable, STRICT, Uuid } from './common.ts'

/** Errors that every webhook route can return. */
export const WEBHOOK_ERRORS = [
  ...KEY_ERRORS,
  'insufficient_scope',
  'invalid_request',
  'not_found',
] as const

/** A path can contain any text. Text that isn't an id of the caller's gets a 404. */
export const WorkspaceParams = Type.Object({ workspaceId: Type.String() })
export const WebhookParams = Type.Object({ webhookId: Type.String() })
export const DeliveryParams = Type.Object({ webhookId: Type.String(), deliveryId: Type.String() })

const Url = Type.String({
  format: 'uri',
  // The URL parser ignores whitespace, but the stored text would keep it.
  pattern: String.raw`^\S+$`,
  maxLength: DESTINATION_CHARACTERS_MAX,
  description: 'Where deliveries are sent. Https and public, unless the operator allows more.',
})
const Events = Type.Array(Type.Enum([...WEBHOOK_EVENTS]), {
  minItems: 1,
  maxItems: WEBHOOK_EVENTS.length,
  uniqueItems: true,
})
const ProjectChoice = Nullable({
  ...Uuid,
  description: 'A project of the workspace; null for all of it.',
})
const SECRET_LENGTH = { minLength: 8, maxLength: 256 } as const
const CustomSecret = Type.String({
  ...SECRET_LENGTH,
  description: 'A signing secret of your own; without it a random one is made.',
})
const Status = Type.Enum([...WEBHOOK_STATUSES])

export const WebhookInput = Type.Object(
  {
    url: Url,
    events: Type.Optional({ ...Events, description: 'All of them by default.' }),
    projectId: Type.Optional(ProjectChoice),
    secretLabel: Type.Optional(
      Type.String({ maxLength: 64, description: 'A name for the secret, to recognise it by.' }),
    ),
    customSecret: Type.Optional(CustomSecret),
  },
  STRICT,
)

export const WebhookChange = Type.Object(
  {
    url: Type.Optional(Url),
    events: Type.Optional(Events),
    projectId: Type.Optional(ProjectChoice),
  },
  { ...STRICT, minProperties: 1 },
)

export const CreatedWebhook = Type.Object(
  {
    id: Uuid,
    url: Type.String(),
    status: Status,
    events: Events,
    projectId: Nullable(Uuid),
    secretLabel: Nullable(Type.String()),
    secret: Type.String({ description: 'The signing secret. It is never shown again.' }),
    createdAt: DateTime,
  },
  STRICT,
)

export const WebhookRecord = Type.Object(
  {
    id: Uuid,
    url: Type.String(),
    status: Status,
    events: Events,
    projectId: Nullable(Uuid),
    secretLabel: Nullable(Type.String()),
    disabledReason: Nullable(Type.String({ description: 'Why it is disabled, as a sentence.' })),
    nextSecretAt: Nullable({
      ...DateTime,
      description: 'While a rotation’s overlap lasts: when the new secret becomes the only one.',
    }),
    lastSuccessAt: Nullable(DateTime),
    lastFailureAt: Nullable(DateTime),
    failureCount: Type.Integer({
      minimum: 0,
      description: 'Failed attempts since the last success.',
    }),
    createdAt: DateTime,
    updatedAt: { ...DateTime, description: 'The last change of settings or status.' },
  },
  STRICT,
)

export const WebhookList = Type.Object({ webhooks: Type.Array(WebhookRecord) }, STRICT)

export const WebhookStatusAnswer = Type.Object({ id: Uuid, status: Status }, STRICT)

const OVERLAP_SECONDS = { minimum: 0, maximum: 604_800, default: 86_400 } as const

export const SecretRotation = Type.Object(
  {
    customSecret: Type.Optional(CustomSecret),
    overlapSeconds: Type.Optional(
      Type.Integer({
        ...OVERLAP_SECONDS,
        description: 'How long the old secret is still used. 0 replaces every secret at once.',
      }),
    ),
  },
  STRICT,
)
export const OVERLAP_SECONDS_DEFAULT = OVERLAP_SECONDS.default

export const RotatedSecret = Type.Object(
  {
    id: Uuid,
    secret: Type.String({ description: 'The new secret. It is never shown again.' }),
    nextSecretAt: Nullable({ ...DateTime, description: 'When it becomes the only one.' }),
  },
  STRICT,
)

export const FinishedRotation = Type.Object({ id: Uuid, nextSecretAt: Type.Null() }, STRICT)

export const TestReceipt = Type.Object(
  { deliveryId: Uuid, sequence: Type.Integer({ minimum: 1 }) },
  STRICT,
)

const DeliveryStatus = Type.Enum([...DELIVERY_STATUSES])
const ErrorClass = Type.Enum([...ERROR_CLASSES], {
  description: 'Why an attempt failed; `http`: the receiver answered, but not with 2xx.',
})
const DELIVERY_FIELDS = {
  id: Uuid,
  webhookId: Uuid,
  eventId: { ...Uuid, description: 'Of a test, the delivery’s own id.' },
  status: DeliveryStatus,
  attempt: Type.Integer({ minimum: 0, description: 'Attempts so far.' }),
  sequence: Type.Integer({ minimum: 1, description: 'The place among this webhook’s deliveries.' }),
  url: Type.String(),
  responseStatus: Nullable(Type.Integer()),
  durationMs: Nullable(Type.Integer()),
  errorClass: Nullable(ErrorClass),
  failureReason: Nullable(Type.String()),
  isTest: Type.Boolean(),
  nextAttemptAt: Nullable(DateTime),
  createdAt: DateTime,
  updatedAt: DateTime,
}

export const DeliveryRecord = Type.Object(DELIVERY_FIELDS)

export const DeliveryPage = Type.Object(
  { data: Type.Array(DeliveryRecord), nextCursor: Nullable(Type.String()) },
  STRICT,
)

export const DeliveryQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 200, default: 50, description: 'Deliveries per page.' }),
    ),
    cursor: Type.Optional(
      Type.String({ maxLength: 512, description: 'The previous page’s `nextCursor`.' }),
    ),
    status: Type.Optional(DeliveryStatus),
    afterSequence: Type.Optional(
      Type.Integer({ minimum: 0, description: 'Those after this one, in ascending order.' }),
    ),
  },
  STRICT,
)

export const DeliveryWithAttempts = Type.Object({
  ...DELIVERY_FIELDS,
  attempts: Type.Array(
    Type.Object({
      attempt: Type.Integer({ minimum: 1 }),
      url: Type.String(),
      startedAt: DateTime,
      durationMs: Type.Integer({ minimum: 0 }),
      responseStatus: Nullable(Type.Integer()),
      errorClass: Nullable(ErrorClass),
      message: Nullable(Type.String({ description: 'What went wrong, as a sentence.' })),
      excerpt: Nullable(Type.String({ description: 'The beginning of the answer.' })),
    }),
    { description: 'The oldest first; the last 20.' },
  ),
})

export const WindowInput = Type.Object(
  {
    from: { ...DateTime, description: 'Inclusive; at most 30 days ago.' },
    to: { ...DateTime, description: 'Exclusive.' },
  },
  STRICT,
)

export const WindowAnswer = Type.Object(
  {
    redelivered: Type.Integer({
      minimum: 0,
      description: 'Failed deliveries that are sent again.',
    }),
    made: Type.Integer({
      minimum: 0,
      description: 'Deliveries of events that came while the webhook was disabled.',
    }),
    isComplete: Type.Boolean(),
    continueFrom: Nullable({ ...DateTime, description: 'The `from` of the next call.' }),
  },
  STRICT,
)
