import { Type } from 'typebox'
import type { CanonicalJson } from '../../platform/json-reader.ts'
import { DateTime, ErrorDetails, FilterText, Nullable, STRICT, Uuid } from './common.ts'

/** Filterable fields have a maximum length, because index entries must fit into a page. */
const FACET_LENGTH_MAX = 512
const EMAIL_LENGTH_MAX = 320

export const IdempotencyKey = Type.String({
  minLength: 1,
  maxLength: 255,
  description:
    'Unique in the workspace for the life of the event. If it is already stored, the response is 200 with the id of the stored event.',
})

export const EventInput = Type.Object(
  {
    category: Type.String({ minLength: 1, maxLength: 256, description: 'Event category.' }),
    action: Type.String({ minLength: 1, maxLength: 256, description: 'Event action.' }),
    timestamp: Type.Optional({
      ...DateTime,
      description:
        'When it happened; the time of receipt by default. At most 24 hours ahead; digits beyond the millisecond are cut.',
    }),
    projectId: Type.Optional({ ...Uuid, description: "A project of the key's workspace." }),
    actor: Type.Optional(
      Type.Object(
        {
          id: Type.Optional(Type.String({ maxLength: FACET_LENGTH_MAX })),
          email: Type.Optional(Type.String({ format: 'email', maxLength: EMAIL_LENGTH_MAX })),
          role: Type.Optional(Type.String({ maxLength: FACET_LENGTH_MAX })),
        },
        { ...STRICT, description: 'Who did it.' },
      ),
    ),
    resource: Type.Optional(
      Type.Object(
        {
          type: Type.Optional(Type.String({ maxLength: FACET_LENGTH_MAX })),
          id: Type.Optional(Type.String({ maxLength: FACET_LENGTH_MAX })),
        },
        { ...STRICT, description: 'What it was done to.' },
      ),
    ),
    metadata: Type.Optional(
      // Not a record of unknowns: reporting an error would visit every key, at 9 µs each. In a large body,
      // metadata arrives as its canonical text.
      Type.Unsafe<Record<string, unknown> | CanonicalJson>(
        Type.Object({}, { description: 'Arbitrary key-value data.' }),
      ),
    ),
    idempotencyKey: Type.Optional(IdempotencyKey),
  },
  STRICT,
)

export const EventId = Type.Object({ id: Uuid }, STRICT)

export const EventRecord = Type.Object({
  id: Uuid,
  seq: Type.Integer({ minimum: 1 }),
  timestamp: DateTime,
  receivedAt: DateTime,
  companyId: Uuid,
  workspaceId: Uuid,
  projectId: Nullable(Uuid),
  category: Type.String(),
  action: Type.String(),
  actor: Nullable(Type.Object({})),
  resource: Nullable(Type.Object({})),
  metadata: Nullable(Type.Object({})),
  traceId: Nullable(Type.String()),
  hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
  prevHash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
})

export const EventFilterQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 200,
        default: 50,
        description:
          'Events per page, at most. A page can have fewer, or even none, although more events follow.',
      }),
    ),
    cursor: Type.Optional(
      Type.String({ maxLength: 512, description: 'The previous page’s `nextCursor`.' }),
    ),
    from: Type.Optional({ ...DateTime, description: 'Inclusive.' }),
    to: Type.Optional({ ...DateTime, description: 'Exclusive.' }),
    category: Type.Optional(FilterText),
    action: Type.Optional(FilterText),
    projectId: Type.Optional(Uuid),
    workspaceId: Type.Optional({ ...Uuid, description: 'Company keys only.' }),
    actorId: Type.Optional(FilterText),
    actorEmail: Type.Optional(FilterText),
    resourceType: Type.Optional(FilterText),
    resourceId: Type.Optional(FilterText),
  },
  STRICT,
)

export const EventPage = Type.Object(
  {
    data: Type.Array(EventRecord),
    nextCursor: Nullable(
      Type.String({ description: 'The cursor of the next page. Null only on the last page.' }),
    ),
  },
  STRICT,
)

export const EVENTS_PER_REQUEST_MAX = 500
/** The maximum length of an event's JSON text, alone or in a batch. */
export const EVENT_BYTES_MAX = 256 * 1_024

export const EventBatch = Type.Object(
  { events: Type.Array(EventInput, { minItems: 1, maxItems: EVENTS_PER_REQUEST_MAX }) },
  STRICT,
)

/** The same without the items' schema, because each item is validated separately. */
export const EventBatchFrame = Type.Object(
  { events: Type.Array(Type.Unknown(), { minItems: 1, maxItems: EVENTS_PER_REQUEST_MAX }) },
  STRICT,
)

export const EventBatchResults = Type.Object(
  {
    results: Type.Array(
      Type.Union([
        Type.Object(
          {
            id: Uuid,
            status: Type.Enum([200, 201]),
            mismatch: Type.Optional(
              Type.Literal(true, {
                description:
                  'The stored event with this idempotency key has a different body and was not changed.',
              }),
            ),
          },
          STRICT,
        ),
        Type.Object(
          {
            status: Type.Literal(400),
            error: Type.String(),
            code: Type.String(),
            details: Type.Optional(ErrorDetails),
          },
          STRICT,
        ),
      ]),
      { description: 'In the order of the events.' },
    ),
  },
  STRICT,
)
