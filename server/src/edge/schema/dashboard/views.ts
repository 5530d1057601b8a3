import { Type } from 'typebox'
import { VIEW_RANGES } from '../../../outlet/console/relative-range.ts'
import { VISIBILITIES } from '../../../outlet/console/view.ts'
import { Name } from '../../dashboard/name-input.ts'
import { DateTime, Nullable, STRICT, TraceId, Uuid } from '../common.ts'
import { Exclusions } from '../exclusion.ts'

/** The longest value that a field of an event can have. */
const Value = Type.String({ maxLength: 512 })

/** All filters except the time range and the workspace. */
export const SAVED_FILTERS = {
  category: Type.Optional(Value),
  action: Type.Optional(Value),
  projectId: Type.Optional(Uuid),
  actorId: Type.Optional(Value),
  actorEmail: Type.Optional(Value),
  resourceType: Type.Optional(Value),
  resourceId: Type.Optional(Value),
  traceId: Type.Optional(TraceId),
  text: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'Contained in category, action, actor id, actor e-mail, resource type or resource id. A to Z match either case.',
    }),
  ),
  not: Type.Optional(Exclusions),
}

export const ViewQuery = Type.Object(
  {
    range: Type.Optional(
      Type.Enum([...VIEW_RANGES], {
        description: 'Up to the moment it is run. Instead of `from` and `to`.',
      }),
    ),
    from: Type.Optional({ ...DateTime, description: 'Inclusive.' }),
    to: Type.Optional({ ...DateTime, description: 'Exclusive.' }),
    ...SAVED_FILTERS,
    columns: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
        maxItems: 20,
        description: 'How the page shows it; the server keeps it as it is.',
      }),
    ),
    groupBy: Type.Optional(
      Type.Enum(['category', 'action'], { description: 'What the histogram is stacked by.' }),
    ),
  },
  STRICT,
)

const WorkspaceChoice = {
  ...Nullable(Uuid),
  description: 'Null: all that whoever runs it sees.',
}
const VisibilityChoice = Type.Enum([...VISIBILITIES], {
  description:
    'PRIVATE: the owner’s alone. WORKSPACE: of whoever sees the workspace; without one, of every member.',
})

export const ViewInput = Type.Object(
  { name: Name, workspaceId: WorkspaceChoice, visibility: VisibilityChoice, query: ViewQuery },
  STRICT,
)

export const ViewChange = Type.Object(
  {
    name: Type.Optional(Name),
    workspaceId: Type.Optional(WorkspaceChoice),
    visibility: Type.Optional(VisibilityChoice),
    query: Type.Optional({ ...ViewQuery, description: 'In place of the whole query.' }),
  },
  { ...STRICT, minProperties: 1 },
)

export const ViewRunInput = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({ minimum: 10, maximum: 200, default: 50, description: 'Events per page.' }),
    ),
    cursor: Type.Optional(
      Type.String({
        maxLength: 512,
        description: 'The previous page’s `nextCursor`. A relative range stays where it was.',
      }),
    ),
  },
  STRICT,
)

export const ViewParams = Type.Object({ viewId: Type.String() })

/** The member who owns something, or null if they were removed. */
export const Owner = Nullable(Type.Object({ id: Uuid, email: Type.String() }, STRICT))

/** For data that another version of the service stored. */
export const USABILITY = {
  isUsable: Type.Boolean({
    description: 'False when it has fields that this version does not take: save it again.',
  }),
  unusableFields: Type.Array(Type.String(), {
    description: 'Those fields. They are left out of what is shown here.',
  }),
}

export const ViewRecord = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    workspaceId: Nullable(Uuid),
    visibility: Type.Enum([...VISIBILITIES]),
    query: ViewQuery,
    ...USABILITY,
    owner: Owner,
    mayChange: Type.Boolean({ description: 'Whether whoever asks may change and delete it.' }),
    createdAt: DateTime,
    updatedAt: DateTime,
  },
  STRICT,
)

export const ViewList = Type.Object({ views: Type.Array(ViewRecord) }, STRICT)
