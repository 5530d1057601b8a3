import { Type } from 'typebox'
import { PERMISSIONS } from '../../../tenancy/policy.ts'
import { DateTime, STRICT, Uuid } from '../common.ts'
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
      needsSecondFactor: Type.Boolean({
        description:
          'Whether the company requires a second factor that the member does not have. Until they set it up, all other operations return `second_factor_required`.',
      }),
    },
    { ...STRICT, description: 'The signed-in member, with their permissions and workspaces.' },
  ),
)

export const SignInChallengeRecord = named(
  'SignInChallenge',
  Type.Object(
    {
      challenge: Type.String({
        description: 'Send it with the second factor. It works for one sign-in.',
      }),
      expiresAt: { ...DateTime, description: 'When the challenge expires.' },
    },
    {
      ...STRICT,
      description: 'The password is right, and the member must enter their second factor.',
    },
  ),
)
