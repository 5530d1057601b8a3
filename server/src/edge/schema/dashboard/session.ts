import { Type } from 'typebox'
import { PERMISSIONS } from '../../../tenancy/policy.ts'
import { STRICT, Uuid } from '../common.ts'
import { named } from '../named.ts'
import { PlanName, WorkspaceKindName } from './company.ts'
import { RoleText } from './member.ts'

export const SessionRecord = named(
  'Session',
  Type.Object(
    {
      user: Type.Object(
        {
          id: { ...Uuid, description: 'The ID of the member.' },
          email: Type.String({ description: 'The email address of the member.' }),
          role: RoleText,
        },
        { ...STRICT, description: 'The signed-in member.' },
      ),
      company: Type.Object(
        {
          id: { ...Uuid, description: 'The ID of the company.' },
          name: Type.String({ description: 'The name of the company.' }),
          plan: PlanName,
        },
        { ...STRICT, description: "The member's company." },
      ),
      workspaces: Type.Array(
        Type.Object(
          {
            id: { ...Uuid, description: 'The ID of the workspace.' },
            name: Type.String({ description: 'The name of the workspace.' }),
            kind: WorkspaceKindName,
          },
          STRICT,
        ),
        { description: 'The workspaces that the member can see.' },
      ),
      permissions: Type.Array(Type.Enum([...PERMISSIONS]), {
        description: "The permissions of the member's role.",
      }),
      address: Type.String({ description: 'The IP address of this request.' }),
    },
    { ...STRICT, description: 'The signed-in member, with their permissions and workspaces.' },
  ),
)
