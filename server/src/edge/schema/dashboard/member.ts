import { Type } from 'typebox'
import { COMPANY_BOUNDS } from '../../../tenancy/plans.ts'
import { ROLES } from '../../../tenancy/member/user-store.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../common.ts'
import { named } from '../named.ts'

export const RoleText = named(
  'Role',
  Type.Enum([...ROLES], { description: 'The role of the member.' }),
)
const Email = Type.String({ description: 'The email address.' })
const GivenWorkspaces = Nullable(
  Type.Array(Uuid, {
    description:
      'The workspaces that the member can see. Null for OWNER and ADMIN, who see all of them.',
  }),
)
const WorkspaceChoice = Type.Array(Uuid, {
  maxItems: COMPANY_BOUNDS.workspacesMax,
  description:
    'The workspaces that the member can see. At least one for ANALYST and VIEWER, none for OWNER and ADMIN.',
})

export const MemberRecord = named(
  'Member',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the member.' },
      email: Email,
      role: RoleText,
      workspaceIds: GivenWorkspaces,
      createdAt: { ...DateTime, description: 'When the member joined.' },
      lastSeenAt: Nullable({
        ...DateTime,
        description: 'When the member was last active. Null if they have no session.',
      }),
      hasSecondFactor: Type.Boolean({
        description: 'Whether the member needs a second factor to sign in.',
      }),
    },
    { ...STRICT, description: 'A member of the company.' },
  ),
)
export const MemberList = Type.Object(
  { members: Type.Array(MemberRecord, { description: 'The members.' }) },
  { ...STRICT, description: 'The members of the company.' },
)
export const MemberParams = Type.Object({ userId: Type.String() })

export const MemberChange = Type.Object(
  { role: Type.Optional(RoleText), workspaceIds: Type.Optional(WorkspaceChoice) },
  { ...STRICT, minProperties: 1, description: 'What to change.' },
)

const LINK = 'The link. It works once and is not shown again. Send it over a private channel.'
const LinkExpiry = { ...DateTime, description: 'When the link expires.' }

export const ResetLink = Type.Object(
  { link: Type.String({ description: LINK }), expiresAt: LinkExpiry },
  { ...STRICT, description: 'A link to set a new password.' },
)

const InvitationRecord = named(
  'Invitation',
  Type.Object(
    {
      id: { ...Uuid, description: 'The ID of the invitation.' },
      email: Email,
      role: RoleText,
      workspaceIds: GivenWorkspaces,
      createdAt: { ...DateTime, description: 'When the invitation was created.' },
      expiresAt: { ...DateTime, description: 'When the invitation expires.' },
    },
    { ...STRICT, description: 'An open invitation.' },
  ),
)
export const InvitationList = Type.Object(
  { invitations: Type.Array(InvitationRecord, { description: 'The invitations.' }) },
  { ...STRICT, description: 'The open invitations of the company.' },
)
export const InvitationParams = Type.Object({ invitationId: Type.String() })

export const InvitationInput = Type.Object(
  {
    email: Type.String({
      format: 'email',
      maxLength: 254,
      description: 'The email address of the new member.',
    }),
    role: RoleText,
    workspaceIds: Type.Optional(WorkspaceChoice),
  },
  { ...STRICT, description: 'Who to invite.' },
)
export const NewInvitation = Type.Object(
  {
    id: { ...Uuid, description: 'The ID of the invitation.' },
    link: Type.String({ description: LINK }),
    expiresAt: LinkExpiry,
    isMailed: Type.Boolean({ description: 'Whether Annals also sends the link by email.' }),
  },
  { ...STRICT, description: 'The invitation, with its link.' },
)
