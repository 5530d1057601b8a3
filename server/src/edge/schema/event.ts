import { Type } from 'typebox'
import { LISTED_VALUES_MAX } from '../../ledger/filter/list-conditions.ts'
import type { CanonicalJson } from '../../platform/json/json-reader.ts'
import {
  CursorQuery,
  DateTime,
  ErrorCodeText,
  ErrorDetails,
  FilterText,
  NextCursor,
  Nullable,
  RECEIVED_RANGE,
  STRICT,
  TIME_RANGE,
  TraceId,
  Uuid,
} from './common.ts'
import { named } from './named.ts'
import { SEARCH_PARAMETERS, SearchText } from './search.ts'

/** Filterable fields have a maximum length, because index entries must fit into a page. */
const FACET_LENGTH_MAX = 512
const EMAIL_LENGTH_MAX = 320

export const IdempotencyKey = Type.String({
  minLength: 1,
  maxLength: 255,
  description:
    'Identifies one event in the workspace for as long as the event exists. If it is already stored, the response is 200 with the ID of the stored event.',
})

const ACTOR = 'Who did it.'
const ACTOR_FIELDS = {
  id: 'The ID of the actor in your system.',
  email: 'The email address of the actor.',
  role: 'The role of the actor in your system.',
}
const RESOURCE = 'What it was done to.'
const RESOURCE_FIELDS = {
  type: 'The kind of resource, such as `invoice`.',
  id: 'The ID of the resource in your system.',
}
const METADATA = 'Arbitrary key-value data.'

const facet = (description: string) =>
  Type.Optional(Type.String({ maxLength: FACET_LENGTH_MAX, description }))
const text = (description: string) => Type.Optional(Type.String({ description }))

export const EventInput = named(
  'EventInput',
  Type.Object(
    {
      category: Type.String({
        minLength: 1,
        maxLength: 256,
        description: 'The event category, such as `auth`.',
      }),
      action: Type.String({
        minLength: 1,
        maxLength: 256,
        description: 'The event action, such as `user.login`.',
      }),
      timestamp: Type.Optional({
        ...DateTime,
        description:
          'When the event happened, by default when Annals receives it. At most 24 hours ahead of the server. Digits after the millisecond are dropped.',
      }),
      projectId: Type.Optional({
        ...Uuid,
        description: "The project that the event belongs to. It must be in the key's workspace.",
      }),
      actor: Type.Optional(
        Type.Object(
          {
            id: facet(ACTOR_FIELDS.id),
            email: Type.Optional(
              Type.String({
                format: 'email',
                maxLength: EMAIL_LENGTH_MAX,
                description: ACTOR_FIELDS.email,
              }),
            ),
            role: facet(ACTOR_FIELDS.role),
          },
          { ...STRICT, description: ACTOR },
        ),
      ),
      resource: Type.Optional(
        Type.Object(
          { type: facet(RESOURCE_FIELDS.type), id: facet(RESOURCE_FIELDS.id) },
          { ...STRICT, description: RESOURCE },
        ),
      ),
      metadata: Type.Optional(
        // Not a record of unknowns: reporting an error would visit every key, at 9 µs each. In a large body,
        // metadata arrives as its canonical text.
        Type.Unsafe<Record<string, unknown> | CanonicalJson>(
          Type.Object({}, { description: METADATA }),
        ),
      ),
      idempotencyKey: Type.Optional(IdempotencyKey),
    },
    { ...STRICT, description: 'An event to store.' },
  ),
)

export const EventReceipt = named(
  'EventId',
  Type.Object(
    { id: { ...Uuid, description: 'The ID of the event.' } },
    { ...STRICT, description: 'The ID of a stored event.' },
  ),
)

const Actor = named(
  'Actor',
  Type.Object(
    {
      id: text(ACTOR_FIELDS.id),
      email: text(ACTOR_FIELDS.email),
      role: text(ACTOR_FIELDS.role),
    },
    { description: ACTOR },
  ),
)

const Resource = named(
  'Resource',
  Type.Object(
    { type: text(RESOURCE_FIELDS.type), id: text(RESOURCE_FIELDS.id) },
    { description: RESOURCE },
  ),
)

const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })
const Metadata = Type.Object({}, { description: METADATA })

/** The fields that a webhook body has too, if the event has them. */
const DELIVERED = {
  id: { ...Uuid, description: 'The ID of the event.' },
  timestamp: { ...DateTime, description: 'When the event happened, in UTC.' },
  companyId: { ...Uuid, description: 'The company that the event belongs to.' },
  workspaceId: { ...Uuid, description: 'The workspace that the event belongs to.' },
  projectId: { ...Uuid, description: 'The project that the event belongs to.' },
  category: Type.String({ description: 'The event category.' }),
  action: Type.String({ description: 'The event action.' }),
  traceId: Type.String({ description: 'The trace ID of the request that sent the event.' }),
  hash: { ...Hash, description: 'The hash of the event in its chain.' },
  prevHash: { ...Hash, description: 'The hash of the previous event in the chain.' },
}

export const EventRecord = named(
  'Event',
  Type.Object(
    {
      id: DELIVERED.id,
      seq: Type.Integer({
        minimum: 1,
        description: "The sequence number in the workspace's chain, starting at 1, without gaps.",
      }),
      timestamp: DELIVERED.timestamp,
      receivedAt: { ...DateTime, description: 'When Annals received the event.' },
      companyId: DELIVERED.companyId,
      workspaceId: DELIVERED.workspaceId,
      projectId: Nullable(DELIVERED.projectId),
      category: DELIVERED.category,
      action: DELIVERED.action,
      actor: Nullable(Actor),
      resource: Nullable(Resource),
      metadata: Nullable(Metadata),
      traceId: Nullable(DELIVERED.traceId),
      hash: DELIVERED.hash,
      prevHash: DELIVERED.prevHash,
    },
    {
      description:
        'A stored event. Parts that were not sent are null. Later versions can add fields.',
    },
  ),
)

/** Accepts any text, like `WorkspaceParams`. */
export const EventParams = Type.Object({ eventId: Type.String() })

/** The body of a webhook delivery. */
export const DeliveredEvent = named(
  'DeliveredEvent',
  Type.Object(
    {
      ...DELIVERED,
      projectId: Type.Optional(DELIVERED.projectId),
      actor: Type.Optional(Actor),
      resource: Type.Optional(Resource),
      metadata: Type.Optional(Metadata),
      traceId: Type.Optional(DELIVERED.traceId),
    },
    {
      description: 'An event as a webhook sends it. Parts that were not sent are missing.',
    },
  ),
)

/** The filters by field, for queries and exports. */
export const FIELD_FILTERS = {
  category: Type.Optional({ ...FilterText, description: 'Only events of this category.' }),
  action: Type.Optional({ ...FilterText, description: 'Only events with this action.' }),
  projectId: Type.Optional({ ...Uuid, description: 'Only events of this project.' }),
  actorId: Type.Optional({ ...FilterText, description: 'Only events with this `actor.id`.' }),
  actorEmail: Type.Optional({ ...FilterText, description: 'Only events with this `actor.email`.' }),
  resourceType: Type.Optional({
    ...FilterText,
    description: 'Only events with this `resource.type`.',
  }),
  resourceId: Type.Optional({ ...FilterText, description: 'Only events with this `resource.id`.' }),
}

/** A parameter that can be repeated. */
const anyOf = (description: string, items: typeof FilterText = FilterText) =>
  Type.Optional(Type.Array(items, { minItems: 1, maxItems: LISTED_VALUES_MAX, description }))

/** The filters by field, for the explorer's queries. */
export const REPEATED_FILTERS = {
  category: anyOf('Only events of this category, or of any of up to 20.'),
  action: anyOf('Only events with this action, or any of up to 20.'),
  projectId: anyOf('Only events of this project, or of any of up to 20.', Uuid),
  actorId: anyOf('Only events with this `actor.id`, or any of up to 20.'),
  actorEmail: anyOf('Only events with this `actor.email`, or any of up to 20.'),
  resourceType: anyOf('Only events with this `resource.type`, or any of up to 20.'),
  resourceId: anyOf('Only events with this `resource.id`, or any of up to 20.'),
}

/** The largest number that a query parameter can have. */
const SEQ_MAX = 999_999_999_999_999
const seq = (description: string) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum: SEQ_MAX, description }))

export const EventFilterQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 200,
        default: 50,
        description:
          'The maximum number of events per page. A page can have fewer, or even none, although more follow.',
      }),
    ),
    cursor: Type.Optional(CursorQuery),
    order: Type.Optional(
      Type.Enum(['asc', 'desc'], {
        default: 'desc',
        description: '`desc` is newest first, `asc` is oldest first.',
      }),
    ),
    ...TIME_RANGE,
    ...RECEIVED_RANGE,
    ...FIELD_FILTERS,
    category: anyOf(
      'Only events of this category. Repeat the parameter for events of any of up to 20 categories.',
    ),
    action: anyOf(
      'Only events with this action. Repeat the parameter for events with any of up to 20 actions.',
    ),
    traceId: Type.Optional({ ...TraceId, description: 'Only events with this trace ID.' }),
    ...SEARCH_PARAMETERS,
    q: Type.Optional(SearchText),
    seqFrom: seq(
      'Only events with this sequence number or a higher one. A company key must also send `workspaceId`, because each workspace has its own sequence.',
    ),
    seqTo: seq(
      'Only events with this sequence number or a lower one. A company key must also send `workspaceId`.',
    ),
    workspaceId: Type.Optional({
      ...Uuid,
      description: 'Only events of this workspace. Only company keys can use this filter.',
    }),
  },
  STRICT,
)

export const EventPage = named(
  'EventPage',
  Type.Object(
    {
      data: Type.Array(EventRecord, { description: 'The events, in the requested order.' }),
      nextCursor: NextCursor,
    },
    { ...STRICT, description: 'A page of events.' },
  ),
)

export const FeedQuery = Type.Object(
  {
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: SEQ_MAX,
        default: 0,
        description:
          'The sequence number of the last event that you have, which is `next` of the previous response. 0 starts at the first event.',
      }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000,
        default: 100,
        description:
          'The maximum number of events. A response can have fewer although more follow.',
      }),
    ),
    waitSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 30,
        default: 0,
        description: 'How long to wait for new events if there are none after `after`.',
      }),
    ),
  },
  STRICT,
)

export const EventFeed = named(
  'EventFeed',
  Type.Object(
    {
      data: Type.Array(EventRecord, {
        description: 'The events after `after`, in the order of the chain, without gaps.',
      }),
      next: Type.Integer({
        minimum: 0,
        description:
          'The sequence number of the last event in `data`, or `after` if there is none. Send it as `after` in the next request.',
      }),
    },
    { ...STRICT, description: 'The next events of a workspace.' },
  ),
)

export const EVENTS_PER_REQUEST_MAX = 500
/** The maximum length of an event's JSON text, alone or in a batch. */
export const EVENT_BYTES_MAX = 256 * 1_024

export const EventBatch = named(
  'EventBatch',
  Type.Object(
    {
      events: Type.Array(EventInput, {
        minItems: 1,
        maxItems: EVENTS_PER_REQUEST_MAX,
        description: 'The events to store.',
      }),
    },
    { ...STRICT, description: 'Several events to store.' },
  ),
)

/** `EventBatch` without the items' schema, because each item is validated separately. */
export const EventBatchFrame = Type.Object(
  { events: Type.Array(Type.Unknown(), { minItems: 1, maxItems: EVENTS_PER_REQUEST_MAX }) },
  STRICT,
)

const StoredItem = named(
  'StoredBatchItem',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the stored event.' },
      status: Type.Enum([200, 201], {
        description: '201 for a new event, 200 if one with its idempotency key was already stored.',
      }),
      mismatch: Type.Optional(
        Type.Literal(true, {
          description: 'The stored event has a different body. It was not changed.',
        }),
      ),
    },
    { ...STRICT, description: 'An event of the batch that is stored.' },
  ),
)

const RefusedItem = named(
  'RefusedBatchItem',
  Type.Object(
    {
      status: Type.Literal(400, { description: 'The status that a single request would get.' }),
      error: Type.String({
        description: 'A human-readable message: what is wrong with the event.',
      }),
      code: ErrorCodeText,
      details: Type.Optional(ErrorDetails),
    },
    { ...STRICT, description: 'An event of the batch that is not stored.' },
  ),
)

export const EventBatchResults = named(
  'EventBatchResults',
  Type.Object(
    {
      results: Type.Array(Type.Union([StoredItem, RefusedItem]), {
        description: 'One result per event, in the order of the events.',
      }),
    },
    { ...STRICT, description: 'The result of each event in the batch.' },
  ),
)
