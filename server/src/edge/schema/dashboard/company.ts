import { Type } from 'typebox'
import { Name } from '../../name-input.ts'
import { ALLOWLIST_ENTRIES_MAX } from '../../../tenancy/allowlist.ts'
import { PLANS } from '../../../tenancy/plans.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../common.ts'
import { named } from '../named.ts'

const Count = Type.Integer({ minimum: 0 })
const Bound = named(
  'Limit',
  Type.Object(
    {
      used: { ...Count, description: 'How many exist.' },
      max: { ...Count, description: 'How many are allowed.' },
    },
    { ...STRICT, description: 'A limit of the company.' },
  ),
)

export const PlanName = named(
  'PlanName',
  Type.Enum([...PLANS], { description: 'The plan of the company.' }),
)

export const WorkspaceKindName = named(
  'WorkspaceKind',
  Type.Enum(['CUSTOMER', 'SYSTEM'], {
    description: "SYSTEM: the workspace that contains the company's audit log.",
  }),
)

const AllowlistRecord = Type.Object(
  {
    entries: Type.Array(Type.String(), { description: 'The CIDR ranges.' }),
    forAllCalls: Type.Boolean({
      description:
        'Whether all requests with a key must come from the list, not only webhook changes.',
    }),
    forDashboard: Type.Boolean({
      description: 'Whether members can use the dashboard only from addresses on the list.',
    }),
  },
  STRICT,
)

export const CompanyRecord = named(
  'Company',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the company.' },
      name: Type.String({ description: 'The name of the company.' }),
      createdAt: { ...DateTime, description: 'When the company was created.' },
      plan: Type.Object(
        {
          name: PlanName,
          exportRowsMax: Nullable(
            Type.Integer({ description: 'Rows per export. Null if the plan has no exports.' }),
          ),
          hasWebhooks: Type.Boolean({ description: 'Whether the plan includes webhooks.' }),
          hotDays: Type.Integer({ description: 'How many days events stay in the explorer.' }),
          eventsPerSecondMax: Nullable(
            Type.Integer({ description: 'Events per second and key. Null for no limit.' }),
          ),
          bytesPerDayMax: Nullable(
            Type.Integer({ description: 'Bytes of events per day. Null for no limit.' }),
          ),
        },
        { ...STRICT, description: 'The plan. Only the operator can change it.' },
      ),
      allowlist: Nullable(
        Type.Object(
          {
            ...AllowlistRecord.properties,
            entriesMax: { ...Count, description: 'How many entries are allowed.' },
          },
          {
            ...STRICT,
            description: 'The IP allowlist. Null for members who are not allowed to change it.',
          },
        ),
      ),
      bounds: Nullable(
        Type.Object(
          {
            workspaces: { ...Bound, description: 'Workspaces.' },
            members: { ...Bound, description: 'Members and open invitations.' },
            companyKeys: { ...Bound, description: 'Company keys.' },
            views: { ...Bound, description: 'Saved views.' },
            openExports: { ...Bound, description: 'Exports that are not final.' },
            projectsPerWorkspaceMax: { ...Count, description: 'Projects per workspace.' },
            keysPerWorkspaceMax: { ...Count, description: 'Keys per workspace.' },
            webhooksPerWorkspaceMax: { ...Count, description: 'Webhooks per workspace.' },
          },
          {
            ...STRICT,
            description:
              "The company's limits. Null for members who don't see the whole company. Each workspace has its own counts.",
          },
        ),
      ),
      requiresSecondFactor: Type.Boolean({
        description: 'Whether every member must have a second factor.',
      }),
      address: Type.String({ description: 'The IP address of this request.' }),
      isAddressOnAllowlist: Type.Boolean({
        description: 'Whether the address of this request is on the allowlist.',
      }),
    },
    { ...STRICT, description: 'The company.' },
  ),
)

export const NameInput = named(
  'NameInput',
  Type.Object(
    { name: { ...Name, description: 'The new name.' } },
    { ...STRICT, description: 'A name.' },
  ),
)

export const AllowlistInput = Type.Object(
  {
    entries: Type.Array(Type.String({ maxLength: 64 }), {
      maxItems: ALLOWLIST_ENTRIES_MAX,
      description: 'IP addresses and CIDR ranges. They are normalized, and duplicates are removed.',
    }),
    forAllCalls: AllowlistRecord.properties.forAllCalls,
    forDashboard: Type.Optional(
      Type.Boolean({
        description:
          'Whether members can use the dashboard only from addresses on the list. If true, the list must contain the address of this request. Unchanged if left out.',
      }),
    ),
    confirmAddressLeftOut: Type.Optional(
      Type.Literal(true, {
        description: "Required if the list doesn't include the address of this request.",
      }),
    ),
  },
  { ...STRICT, description: 'The new allowlist.' },
)

export const WorkspaceRecord = named(
  'Workspace',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the workspace.' },
      name: Type.String({ description: 'The name of the workspace.' }),
      kind: WorkspaceKindName,
      createdAt: { ...DateTime, description: 'When the workspace was created.' },
      projects: { ...Count, description: 'The number of projects.' },
      keys: { ...Count, description: 'The number of active keys.' },
      rotatingKeys: {
        ...Count,
        description: 'The number of replaced keys that still work until their grace period ends.',
      },
      webhooks: { ...Count, description: 'The number of webhooks.' },
      events: { ...Count, description: 'The number of events, including archived events.' },
    },
    { ...STRICT, description: 'A workspace.' },
  ),
)
export const WorkspaceList = Type.Object(
  { workspaces: Type.Array(WorkspaceRecord, { description: 'The workspaces.' }) },
  { ...STRICT, description: 'The workspaces that the member can see.' },
)

export const ProjectRecord = named(
  'Project',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the project.' },
      name: Type.String({ description: 'The name of the project.' }),
      createdAt: { ...DateTime, description: 'When the project was created.' },
    },
    { ...STRICT, description: 'A project.' },
  ),
)
export const ProjectList = Type.Object(
  { projects: Type.Array(ProjectRecord, { description: 'The projects.' }) },
  { ...STRICT, description: 'The projects of the workspace.' },
)
export const ProjectParams = Type.Object({ workspaceId: Type.String(), projectId: Type.String() })
