import { Type } from 'typebox'
import { COMPANY_BOUNDS } from '../../../tenancy/plans.ts'
import { ROLES } from '../../../tenancy/user-store.ts'
import { DateTime, Nullable, STRICT, Uuid } from '../common.ts'

const Role = Type.Enum([...ROLES])
const GivenWorkspaces = Nullable(
  Type.Array(Uuid, { description: 'Null for OWNER and ADMIN: the whole company.' }),
)
const WorkspaceChoice = Type.Array(Uuid, {
  maxItems: COMPANY_BOUNDS.workspacesMax,
  description: 'At least one for ANALYST and VIEWER; none for OWNER and ADMIN.',
})

export const MemberRecord = Type.Object(
  {
    id: Uuid,
    email: Type.String(),
    role: Role,
    workspaceIds: GivenWorkspaces,
    createdAt: DateTime,
    lastSeenAt: Nullable({ ...DateTime, description: 'Null when no session is left to tell.' }),
  },
  STRICT,
)
export const MemberList = Type.Object({ members: Type.Array(MemberRecord) }, STRICT)
export const MemberParams = Type.Object({ userId: Type.String() })

export const MemberChange = Type.Object(
  { role: Type.Optional(Role), workspaceIds: Type.Optional(WorkspaceChoice) },
  { ...STRICT, minProperties: 1 },
)

const LINK =
  'Shown in this answer only, and good for one use. Pass it on where nobody else reads it.'

export const ResetLink = Type.Object(
  { link: Type.String({ description: LINK }), expiresAt: DateTime },
  STRICT,
)

export const InvitationRecord = Type.Object(
  {
    id: Uuid,
    email: Type.String(),
    role: Role,
    workspaceIds: GivenWorkspaces,
    createdAt: DateTime,
    expiresAt: DateTime,
  },
  STRICT,
)
export const InvitationList = Type.Object({ invitations: Type.Array(InvitationRecord) }, STRICT)
export const InvitationParams = Type.Object({ invitationId: Type.String() })

export const InvitationInput = Type.Object(
  {
    email: Type.String({ format: 'email', maxLength: 254 }),
    role: Role,
    workspaceIds: Type.Optional(WorkspaceChoice),
  },
  STRICT,
)
export const NewInvitation = Type.Object(
  {
    id: Uuid,
    link: Type.String({ description: LINK }),
    expiresAt: DateTime,
    isMailed: Type.Boolean({ description: 'A mail with the link is on its way, too.' }),
  },
  STRICT,
)
