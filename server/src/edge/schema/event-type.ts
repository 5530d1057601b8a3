import { Type } from 'typebox'
import { JSON_TYPES } from '../../ledger/event-type/metadata-keys.ts'
import { CHANGE_KINDS } from '../../outlet/event-type/event-type.ts'
import { TYPE_FLAGS } from '../../outlet/event-type/event-type-list-store.ts'
import { CursorQuery, DateTime, FilterText, NextCursor, Nullable, STRICT, Uuid } from './common.ts'
import { named } from './named.ts'

const JsonTypeName = Type.Enum([...JSON_TYPES], { description: 'A JSON type.' })

const KeyPath = Type.Array(Type.String(), {
  description: 'The key, or the outer and the inner key.',
})

const MetadataKey = named(
  'MetadataKey',
  Type.Object(
    {
      path: KeyPath,
      types: Type.Array(JsonTypeName, {
        description: 'The JSON types of its values, in the order in which they appeared.',
      }),
      count: Type.Integer({ minimum: 1, description: 'How many events of the type have the key.' }),
      firstSeenAt: { ...DateTime, description: 'When the first of them was received.' },
      lastSeenAt: { ...DateTime, description: 'When the last of them was received.' },
    },
    { ...STRICT, description: 'A key in the metadata of the events of a type.' },
  ),
)

const ShapeChange = named(
  'ShapeChange',
  Type.Object(
    {
      kind: Type.Enum([...CHANGE_KINDS], {
        description:
          '`KEY_ADDED`: the key is new. `TYPE_ADDED`: its values had other JSON types before.',
      }),
      path: KeyPath,
      type: { ...JsonTypeName, description: 'The JSON type that appeared.' },
      seenAt: { ...DateTime, description: 'When the first event with it was received.' },
      eventId: { ...Uuid, description: 'The ID of that event.' },
    },
    { ...STRICT, description: 'A change in the shape of the metadata.' },
  ),
)

const EventType = named(
  'EventType',
  Type.Object(
    {
      category: Type.String({ description: 'The category of its events.' }),
      action: Type.String({ description: 'The action of its events.' }),
      count: Type.Integer({
        minimum: 1,
        description: 'The number of its events, hot and archived.',
      }),
      firstSeenAt: { ...DateTime, description: 'When its first event was received.' },
      firstSeq: Type.Integer({ minimum: 1, description: 'The sequence number of that event.' }),
      lastSeenAt: { ...DateTime, description: 'When its last event was received.' },
      lastSeq: Type.Integer({ minimum: 1, description: 'The sequence number of that event.' }),
      flags: Type.Array(Type.Enum([...TYPE_FLAGS]), {
        description:
          '`NEW` for 7 days after the first event, unless that event was stored before the upgrade to a release with event types; `DRIFT` for 30 days after a change in the shape of the metadata.',
      }),
      metadataKeys: Type.Array(MetadataKey, {
        description: 'The keys of its metadata and of the objects in it, at most 200.',
      }),
      drift: Type.Array(ShapeChange, {
        description: 'The changes of the last 30 days, newest first.',
      }),
      truncated: Type.Boolean({
        description: 'Whether keys are left out, because there are too many or they are too long.',
      }),
    },
    { ...STRICT, description: 'The events with the same category and action.' },
  ),
)

export const EventTypePage = named(
  'EventTypePage',
  Type.Object(
    {
      data: Type.Array(EventType, { description: 'The types, by category and action.' }),
      nextCursor: NextCursor,
      truncated: Type.Boolean({
        description:
          'Whether the workspace has more than 1,000 types. Only the first 1,000 are listed.',
      }),
      fromSeq: Nullable(
        Type.Integer({
          minimum: 1,
          description:
            'The sequence number of the first event that is counted. It is above 1 only if earlier events were archived before Annals counted types.',
        }),
      ),
      upToSeq: Nullable(
        Type.Integer({
          minimum: 1,
          description: 'The sequence number of the last event that is counted.',
        }),
      ),
    },
    { ...STRICT, description: 'A page of the event types of a workspace.' },
  ),
)

export const EventTypeQuery = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        default: 50,
        description:
          'The maximum number of types per page. A page can have fewer, although more follow.',
      }),
    ),
    cursor: Type.Optional(CursorQuery),
    category: Type.Optional({ ...FilterText, description: 'Only types with this category.' }),
    action: Type.Optional({ ...FilterText, description: 'Only types with this action.' }),
    flag: Type.Optional(Type.Enum([...TYPE_FLAGS], { description: 'Only types with this flag.' })),
  },
  STRICT,
)
