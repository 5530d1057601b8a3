import { Type } from 'typebox'
import { Name } from '../../dashboard/name-input.ts'
import { ALLOWLIST_ENTRIES_MAX } from '../../../tenancy/allowlist.ts'
import { PLANS } from '../../../tenancy/plans.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../common.ts'

const Count = Type.Integer({ minimum: 0 })
const Bound = Type.Object({ used: Count, max: Count }, STRICT)

export const AllowlistRecord = Type.Object(
  {
    entries: Type.Array(Type.String({ description: 'A CIDR range.' })),
    forAllCalls: Type.Boolean({
      description: 'Every call with a key must come from the list, not only changes of webhooks.',
    }),
  },
  STRICT,
)

export const CompanyRecord = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    createdAt: DateTime,
    plan: Type.Object(
      {
        name: Type.Enum([...PLANS]),
        exportRowsMax: Nullable(
          Type.Integer({ description: 'Rows of one export; null: no exports.' }),
        ),
        hasWebhooks: Type.Boolean(),
        hotDays: Type.Integer({ description: 'How long events are in the explorer.' }),
        eventsPerSecondMax: Nullable(Type.Integer({ description: 'A key; null: no limit.' })),
      },
      { ...STRICT, description: 'Changed by the operator of the service only.' },
    ),
    allowlist: Nullable(
      Type.Object(
        { ...AllowlistRecord.properties, entriesMax: Count },
        { ...STRICT, description: 'Null for a role that may not change it.' },
      ),
    ),
    bounds: Nullable(
      Type.Object(
        {
          workspaces: Bound,
          members: { ...Bound, description: 'Open invitations are counted, too.' },
          companyKeys: Bound,
          views: Bound,
          openExports: Bound,
          projectsPerWorkspaceMax: Count,
          keysPerWorkspaceMax: Count,
          webhooksPerWorkspaceMax: Count,
        },
        {
          ...STRICT,
          description:
            'What of a workspace is used is in its own record. Null for a role that does not see all of the company.',
        },
      ),
    ),
    address: Type.String({ description: 'Where this request came from.' }),
    isAddressOnAllowlist: Type.Boolean(),
  },
  STRICT,
)

export const NameInput = Type.Object({ name: Name }, STRICT)

export const AllowlistInput = Type.Object(
  {
    entries: Type.Array(Type.String({ maxLength: 64 }), {
      maxItems: ALLOWLIST_ENTRIES_MAX,
      description: 'Addresses and CIDR ranges. Kept in one spelling, each once.',
    }),
    forAllCalls: Type.Boolean(),
    confirmAddressLeftOut: Type.Optional(
      Type.Literal(true, { description: 'Needed when the list leaves out your own address.' }),
    ),
  },
  STRICT,
)

export const WorkspaceRecord = Type.Object(
  {
    id: Uuid,
    name: Type.String(),
    kind: Type.Enum(['CUSTOMER', 'SYSTEM'], {
      description: "SYSTEM: the company's own, with the dashboard's audit.",
    }),
    createdAt: DateTime,
    projects: Count,
    keys: { ...Count, description: 'That work and are not being replaced.' },
    webhooks: Count,
    events: { ...Count, description: 'Ever stored, archived ones included.' },
  },
  STRICT,
)
export const WorkspaceList = Type.Object({ workspaces: Type.Array(WorkspaceRecord) }, STRICT)
export const WorkspaceParams = Type.Object({ workspaceId: Type.String() })

export const ProjectRecord = Type.Object(
  { id: Uuid, name: Type.String(), createdAt: DateTime },
  STRICT,
)
export const ProjectList = Type.Object({ projects: Type.Array(ProjectRecord) }, STRICT)
export const ProjectParams = Type.Object({ workspaceId: Type.String(), projectId: Type.String() })
