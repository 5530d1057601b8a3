import { Type } from 'typebox'
import { VIEW_RANGES } from '../../../outlet/explorer/relative-range.ts'
import { VISIBILITIES } from '../../../outlet/saved/view.ts'
import { Name } from '../../name-input.ts'
import { DateTime, Nullable, RECEIVED_RANGE, STRICT, TIME_RANGE, TraceId, Uuid } from '../common.ts'
import { AnyOf, Exclusions } from '../exclusion.ts'
import { named } from '../named.ts'
import { CountByChoice, SEARCH_FIELDS, SearchText, SortChoice } from '../search.ts'

/** The longest value that a field of an event can have. */
const Value = Type.String({ maxLength: 512 })

/** All filters except the time range and the workspace. */
export const SAVED_FILTERS = {
  ...RECEIVED_RANGE,
  category: Type.Optional({ ...Value, description: 'Only events of this category.' }),
  action: Type.Optional({ ...Value, description: 'Only events with this action.' }),
  projectId: Type.Optional({ ...Uuid, description: 'Only events of this project.' }),
  actorId: Type.Optional({ ...Value, description: 'Only events with this `actor.id`.' }),
  actorEmail: Type.Optional({ ...Value, description: 'Only events with this `actor.email`.' }),
  resourceType: Type.Optional({ ...Value, description: 'Only events with this `resource.type`.' }),
  resourceId: Type.Optional({ ...Value, description: 'Only events with this `resource.id`.' }),
  traceId: Type.Optional({ ...TraceId, description: 'Only events with this trace ID.' }),
  ...SEARCH_FIELDS,
  text: Type.Optional(SearchText),
  anyOf: Type.Optional(AnyOf),
  not: Type.Optional(Exclusions),
}

export const ViewQuery = named(
  'ViewQuery',
  Type.Object(
    {
      range: Type.Optional(
        Type.Enum([...VIEW_RANGES], {
          description:
            'A time range as of when the view is run, instead of `from` and `to`. The server resolves `today`, `yesterday`, `thisWeek` and `previousMonth` in UTC, and the dashboard in the time zone that it shows.',
        }),
      ),
      ...TIME_RANGE,
      ...SAVED_FILTERS,
      sort: Type.Optional({ ...SortChoice, description: 'The order of the events.' }),
      columns: Type.Optional(
        Type.Array(Type.String({ minLength: 1, maxLength: 64 }), {
          maxItems: 20,
          description: "The columns that the page shows. The server doesn't interpret them.",
        }),
      ),
      groupBy: Type.Optional({
        ...CountByChoice,
        description:
          'What the histogram is grouped by, as in `GET /dashboard/events/metrics/histogram`.',
      }),
    },
    { ...STRICT, description: 'An explorer query.' },
  ),
)

const WorkspaceChoice = {
  ...Nullable(Uuid),
  description: 'The workspace to query. Null: all that the member who runs the view can see.',
}
const VisibilityChoice = named(
  'Visibility',
  Type.Enum([...VISIBILITIES], {
    description:
      'PRIVATE: only the owner sees the view. WORKSPACE: members who can see the workspace see it, or all members if it has no workspace.',
  }),
)

export const ViewInput = Type.Object(
  {
    name: { ...Name, description: 'The name of the view.' },
    workspaceId: WorkspaceChoice,
    visibility: VisibilityChoice,
    query: ViewQuery,
  },
  { ...STRICT, description: 'The new view.' },
)

export const ViewChange = Type.Object(
  {
    name: Type.Optional({ ...Name, description: 'The new name.' }),
    workspaceId: Type.Optional(WorkspaceChoice),
    visibility: Type.Optional(VisibilityChoice),
    query: Type.Optional({ ...ViewQuery, description: 'Replaces the whole query.' }),
  },
  { ...STRICT, minProperties: 1, description: 'What to change.' },
)

export const ViewRunInput = Type.Object(
  {
    limit: Type.Optional(
      Type.Integer({
        minimum: 10,
        maximum: 200,
        default: 50,
        description: 'The maximum number of events per page.',
      }),
    ),
    cursor: Type.Optional(
      Type.String({
        maxLength: 512,
        description:
          'The `nextCursor` of the previous page. A relative time range stays the same on every page.',
      }),
    ),
  },
  { ...STRICT, description: 'Which page to return.' },
)

export const ViewParams = Type.Object({ viewId: Type.String() })

/** The member who owns something, or null if they were removed. */
export const Owner = Nullable(
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the member.' },
      email: Type.String({ description: 'The email address of the member.' }),
    },
    { ...STRICT, description: 'The owner. Null if they were removed.' },
  ),
)

export const MayChange = Type.Boolean({
  description: 'Whether the signed-in member can change and delete it.',
})

/** For data that another version of the service stored. */
export const USABILITY = {
  isUsable: Type.Boolean({
    description: "False if it contains fields that this version doesn't support. Save it again.",
  }),
  unusableFields: Type.Array(Type.String(), {
    description: 'The unsupported fields. They are omitted from the response.',
  }),
}

export const ViewRecord = named(
  'View',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the view.' },
      name: Type.String({ description: 'The name of the view.' }),
      workspaceId: WorkspaceChoice,
      visibility: VisibilityChoice,
      query: ViewQuery,
      ...USABILITY,
      owner: Owner,
      mayChange: MayChange,
      createdAt: { ...DateTime, description: 'When the view was created.' },
      updatedAt: { ...DateTime, description: 'When the view last changed.' },
    },
    { ...STRICT, description: 'A saved explorer query.' },
  ),
)

export const ViewList = Type.Object(
  { views: Type.Array(ViewRecord, { description: 'The views.' }) },
  { ...STRICT, description: 'The views that the member can see.' },
)
