import { Type } from 'typebox'
import { DELIVERY_STATUSES, ERROR_CLASSES } from '../../outlet/webhook/delivery/delivery.ts'
import { DESTINATION_CHARACTERS_MAX } from '../../outlet/webhook/send/destination.ts'
import {
  EXTRA_HEADERS_MAX,
  type ExtraHeaders,
  HEADER_VALUE_CHARS_MAX,
} from '../../outlet/webhook/send/extra-headers.ts'
import {
  WEBHOOK_EVENTS,
  WEBHOOK_STATUSES,
  type WebhookFilter,
} from '../../outlet/webhook/webhook.ts'
import { CursorQuery, DateTime, NextCursor, Nullable, STRICT, Uuid } from './common.ts'
import { named } from './named.ts'

/** Accepts any text, like `WorkspaceParams`. */
export const WebhookParams = Type.Object({ webhookId: Type.String() })
export const DeliveryParams = Type.Object({ webhookId: Type.String(), deliveryId: Type.String() })

const WebhookId = { ...Uuid, description: 'The ID of the webhook.' }
const Url = Type.String({
  format: 'uri',
  // The URL parser ignores whitespace, but the stored text would keep it.
  pattern: String.raw`^\S+$`,
  maxLength: DESTINATION_CHARACTERS_MAX,
  description:
    'The endpoint that receives deliveries. It must use https and a public address, unless the operator allows others.',
})
const ReceiverUrl = Type.String({ description: 'The endpoint that receives deliveries.' })
const Events = Type.Array(Type.Enum([...WEBHOOK_EVENTS]), {
  minItems: 1,
  maxItems: WEBHOOK_EVENTS.length,
  uniqueItems: true,
  description: 'The webhook event types that are sent.',
})
const ProjectChoice = Nullable({
  ...Uuid,
  description: 'Only send events of this project of the workspace. Null for all events.',
})
const ProjectId = Nullable({
  ...Uuid,
  description: 'Only events of this project are sent. Null for all events of the workspace.',
})
const SecretLabel = Nullable(Type.String({ description: 'The label of the secret.' }))
const LabelText = Type.String({
  maxLength: 64,
  description: 'A label that helps you recognize the secret.',
})
const NameText = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'A name that helps you recognize the webhook.',
})
const Name = Nullable({ ...NameText, description: 'The name of the webhook.' })

const FilterPatterns = Type.Array(
  Type.String({ minLength: 1, maxLength: 256, pattern: '^[^*]*[*]?$' }),
  { minItems: 1, maxItems: 20, uniqueItems: true },
)
const FILTERED = {
  categories: 'category',
  actions: 'action',
  actorIds: 'actor ID',
  resourceTypes: 'resource type',
} as const satisfies Record<keyof WebhookFilter, string>
const patternsOf = (field: keyof WebhookFilter) =>
  Type.Optional({
    ...FilterPatterns,
    description: `Only events whose ${FILTERED[field]} matches one of these. \`invoice.*\` matches every text that starts with \`invoice.\`.`,
  })
const Filter = named(
  'WebhookFilter',
  Type.Object(
    {
      categories: patternsOf('categories'),
      actions: patternsOf('actions'),
      actorIds: patternsOf('actorIds'),
      resourceTypes: patternsOf('resourceTypes'),
    },
    {
      ...STRICT,
      minProperties: 1,
      description: 'Which events to send. An event must match every field that is set.',
    },
  ),
)
const FilterChoice = Nullable({
  ...Filter,
  description:
    'Which events to send. An event must match every field that is set. Null for all events.',
})

const HeaderValue = Type.String({
  minLength: 1,
  maxLength: HEADER_VALUE_CHARS_MAX,
  pattern: '^[ -~]*$',
})
const Headers = Type.Unsafe<ExtraHeaders>(
  Type.Object(
    {},
    {
      additionalProperties: HeaderValue,
      maxProperties: EXTRA_HEADERS_MAX,
      description:
        'Headers that the receiver requires, by name. Annals sends them with every attempt, stores them encrypted and never returns the values. Values consist of visible ASCII characters and inner spaces. Names of headers that Annals or HTTP uses are refused.',
    },
  ),
)
const HeaderNames = Type.Array(Type.String(), {
  description: 'The names of the extra headers. The values are never returned.',
})

const CreatedAt = { ...DateTime, description: 'When it was created.' }
const SECRET_LENGTH = { minLength: 8, maxLength: 256 } as const
const CustomSecret = Type.String({
  ...SECRET_LENGTH,
  description: 'Your own signing secret. By default, Annals generates one.',
})
const Status = named(
  'WebhookStatus',
  Type.Enum([...WEBHOOK_STATUSES], { description: 'Whether the webhook sends events.' }),
)

export const WebhookInput = named(
  'WebhookInput',
  Type.Object(
    {
      url: Url,
      events: Type.Optional({ ...Events, description: 'The event types to send. Default: all.' }),
      projectId: Type.Optional(ProjectChoice),
      filter: Type.Optional(FilterChoice),
      name: Type.Optional(Nullable(NameText)),
      headers: Type.Optional(Headers),
      secretLabel: Type.Optional(LabelText),
      customSecret: Type.Optional(CustomSecret),
    },
    { ...STRICT, description: 'The settings of a new webhook.' },
  ),
)

export const WebhookChange = named(
  'WebhookChange',
  Type.Object(
    {
      url: Type.Optional(Url),
      events: Type.Optional(Events),
      projectId: Type.Optional(ProjectChoice),
      filter: Type.Optional(FilterChoice),
      name: Type.Optional(Nullable({ ...NameText, description: 'A new name. Null for none.' })),
      headers: Type.Optional({
        ...Headers,
        description:
          'Replaces all extra headers. `{}` removes them. A `url` with another origin also removes them, unless this field is set.',
      }),
      secretLabel: Type.Optional(
        Nullable({ ...LabelText, description: 'A new label for the secret. Null for none.' }),
      ),
    },
    { ...STRICT, minProperties: 1, description: 'The settings to change.' },
  ),
)

export const CreatedWebhook = named(
  'CreatedWebhook',
  Type.Object(
    {
      id: WebhookId,
      name: Name,
      url: ReceiverUrl,
      status: Status,
      events: Events,
      projectId: ProjectId,
      filter: FilterChoice,
      headerNames: HeaderNames,
      secretLabel: SecretLabel,
      secret: Type.String({
        description: 'The signing secret. Store it now: it is not shown again.',
      }),
      createdAt: CreatedAt,
    },
    { ...STRICT, description: 'The new webhook, with its secret.' },
  ),
)

export const WebhookRecord = named(
  'Webhook',
  Type.Object(
    {
      id: WebhookId,
      name: Name,
      url: ReceiverUrl,
      status: Status,
      events: Events,
      projectId: ProjectId,
      filter: FilterChoice,
      filteredCount: Type.Integer({
        minimum: 0,
        description:
          'How many events `projectId` and `filter` left out. Events that were skipped because the webhook was disabled are not counted. The number never decreases: an event that later gets a delivery because you redeliver a window stays counted.',
      }),
      headerNames: HeaderNames,
      secretLabel: SecretLabel,
      disabledReason: Nullable(
        Type.String({ description: 'A human-readable reason why the webhook is disabled.' }),
      ),
      nextSecretAt: Nullable({
        ...DateTime,
        description:
          'When the new secret replaces the old one. Null unless a rotation is in progress.',
      }),
      lastSuccessAt: Nullable({ ...DateTime, description: 'When an attempt last succeeded.' }),
      lastFailureAt: Nullable({ ...DateTime, description: 'When an attempt last failed.' }),
      failureCount: Type.Integer({
        minimum: 0,
        description: 'Failed attempts since the last success.',
      }),
      createdAt: CreatedAt,
      updatedAt: { ...DateTime, description: 'When the settings or the status last changed.' },
    },
    { ...STRICT, description: 'A webhook.' },
  ),
)

export const WebhookList = named(
  'WebhookList',
  Type.Object(
    { webhooks: Type.Array(WebhookRecord, { description: 'The webhooks, oldest first.' }) },
    { ...STRICT, description: 'The webhooks of a workspace.' },
  ),
)

export const WebhookStatusResult = named(
  'WebhookStatusResult',
  Type.Object(
    { id: WebhookId, status: Status },
    { ...STRICT, description: 'The status of the webhook after the request.' },
  ),
)

const OVERLAP_SECONDS = { minimum: 0, maximum: 604_800, default: 86_400 } as const

export const SecretRotation = named(
  'SecretRotation',
  Type.Object(
    {
      customSecret: Type.Optional(CustomSecret),
      secretLabel: Type.Optional({
        ...LabelText,
        description:
          'A label that helps you recognize the new secret. Without one, the new secret has no label.',
      }),
      overlapSeconds: Type.Optional(
        Type.Integer({
          ...OVERLAP_SECONDS,
          description:
            'How long the old secret stays in use, in seconds. 0 replaces the secret immediately.',
        }),
      ),
    },
    { ...STRICT, description: 'How to rotate the secret.' },
  ),
)
export const OVERLAP_SECONDS_DEFAULT = OVERLAP_SECONDS.default

export const RotatedSecret = named(
  'RotatedSecret',
  Type.Object(
    {
      id: WebhookId,
      secret: Type.String({ description: 'The new secret. Store it now: it is not shown again.' }),
      secretLabel: SecretLabel,
      nextSecretAt: Nullable({
        ...DateTime,
        description:
          'When the new secret replaces the old one. Null if it already has replaced it.',
      }),
    },
    { ...STRICT, description: 'The new secret.' },
  ),
)

export const FinishedRotation = named(
  'FinishedRotation',
  Type.Object(
    {
      id: WebhookId,
      nextSecretAt: Type.Null({ description: 'Null: only the new secret is in use.' }),
    },
    { ...STRICT, description: 'The webhook now uses only its newest secret.' },
  ),
)

const DeliveryId = { ...Uuid, description: 'The ID of the delivery.' }
const Sequence = Type.Integer({
  minimum: 1,
  description: "The position among the webhook's deliveries.",
})

export const TestReceipt = named(
  'TestReceipt',
  Type.Object(
    { deliveryId: DeliveryId, sequence: Sequence },
    { ...STRICT, description: 'The delivery of the test event.' },
  ),
)

const DeliveryStatus = named(
  'DeliveryStatus',
  Type.Enum([...DELIVERY_STATUSES], {
    description:
      'PENDING: waiting for its first attempt. SENDING: an attempt is in progress. RETRY_SCHEDULED: waiting for the next attempt. SUCCEEDED and FAILED are final.',
  }),
)
export const DeliveryErrorClass = named(
  'DeliveryErrorClass',
  Type.Enum([...ERROR_CLASSES], {
    description: 'Why an attempt failed. `http`: the receiver responded, but not with 2xx.',
  }),
)
const ResponseStatus = Nullable(
  Type.Integer({ description: 'The HTTP status of the response. Null if there was none.' }),
)

const DELIVERY_FIELDS = {
  id: DeliveryId,
  webhookId: WebhookId,
  eventId: {
    ...Uuid,
    description: 'The ID of the event. For a test, the same as the ID of the delivery.',
  },
  eventSeq: Nullable(
    Type.Integer({
      minimum: 1,
      description: 'The position of the event in its chain. Null for a test.',
    }),
  ),
  status: DeliveryStatus,
  attempt: Type.Integer({ minimum: 0, description: 'The number of attempts so far.' }),
  sequence: Sequence,
  url: Type.String({ description: 'The endpoint of the last attempt.' }),
  responseStatus: ResponseStatus,
  durationMs: Nullable(
    Type.Integer({ description: 'How long the last attempt took, in milliseconds.' }),
  ),
  errorClass: Nullable(DeliveryErrorClass),
  failureReason: Nullable(
    Type.String({ description: 'A human-readable reason why the delivery failed or is retried.' }),
  ),
  isTest: Type.Boolean({ description: 'Whether this is a test delivery.' }),
  nextAttemptAt: Nullable({
    ...DateTime,
    description: 'When the next attempt is due. Null if none is scheduled.',
  }),
  createdAt: CreatedAt,
  updatedAt: { ...DateTime, description: 'When the delivery last changed.' },
}

export const DeliveryRecord = named(
  'Delivery',
  Type.Object(DELIVERY_FIELDS, {
    description: 'One event sent to one webhook. Later versions can add fields.',
  }),
)

export const DeliveryPage = named(
  'DeliveryPage',
  Type.Object(
    {
      data: Type.Array(DeliveryRecord, { description: 'The deliveries.' }),
      nextCursor: NextCursor,
    },
    { ...STRICT, description: 'A page of deliveries.' },
  ),
)

export const DeliveryQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 200,
        default: 50,
        description: 'The maximum number of deliveries per page.',
      }),
    ),
    cursor: Type.Optional(CursorQuery),
    status: Type.Optional({ ...DeliveryStatus, description: 'Only deliveries with this status.' }),
    afterSequence: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'Only deliveries after this sequence number, in ascending order.',
      }),
    ),
  },
  STRICT,
)

const DeliveryAttempt = named(
  'DeliveryAttempt',
  Type.Object(
    {
      attempt: Type.Integer({ minimum: 1, description: 'The number of the attempt.' }),
      url: Type.String({ description: 'The endpoint.' }),
      startedAt: { ...DateTime, description: 'When the attempt started.' },
      durationMs: Type.Integer({
        minimum: 0,
        description: 'How long the attempt took, in milliseconds.',
      }),
      responseStatus: ResponseStatus,
      errorClass: Nullable(DeliveryErrorClass),
      message: Nullable(Type.String({ description: 'A human-readable message: what went wrong.' })),
      excerpt: Nullable(Type.String({ description: 'The start of the response body.' })),
    },
    { description: 'One try to send a delivery.' },
  ),
)

export const DeliveryWithAttempts = named(
  'DeliveryWithAttempts',
  Type.Object(
    {
      ...DELIVERY_FIELDS,
      attempts: Type.Array(DeliveryAttempt, { description: 'The last 20 attempts, oldest first.' }),
    },
    { description: 'A delivery with its attempts. Later versions can add fields.' },
  ),
)

export const WindowInput = named(
  'RedeliveryWindow',
  Type.Object(
    {
      from: {
        ...DateTime,
        description: 'Start of the time range, inclusive. At most 30 days ago.',
      },
      to: { ...DateTime, description: 'End of the time range, exclusive.' },
    },
    { ...STRICT, description: 'Which events to resend, by when Annals received them.' },
  ),
)

export const RedeliveryResult = named(
  'RedeliveryResult',
  Type.Object(
    {
      redelivered: Type.Integer({
        minimum: 0,
        description: 'Failed deliveries that will be sent again.',
      }),
      made: Type.Integer({
        minimum: 0,
        description:
          'New deliveries for events without one, such as those received while the webhook was disabled.',
      }),
      isComplete: Type.Boolean({ description: 'Whether the whole time range was processed.' }),
      continueFrom: Nullable({
        ...DateTime,
        description: 'The `from` of the next request. Null if the result is complete.',
      }),
    },
    { ...STRICT, description: 'What will be sent.' },
  ),
)
