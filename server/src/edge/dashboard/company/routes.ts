import { listRoutes } from '../../define-route.ts'
import { createInvitation } from './create-invitation.ts'
import { createMemberResetLink } from './create-member-reset-link.ts'
import { createProject } from './create-project.ts'
import { createWorkspace } from './create-workspace.ts'
import { getCompany } from './get-company.ts'
import { getUsage } from './get-usage.ts'
import { listInvitations } from './list-invitations.ts'
import { listMembers } from './list-members.ts'
import { listProjects } from './list-projects.ts'
import { listWorkspaces } from './list-workspaces.ts'
import { removeMember } from './remove-member.ts'
import { replaceAllowlist } from './replace-allowlist.ts'
import { replaceSignInRules } from './replace-sign-in-rules.ts'
import { resetMemberSecondFactor } from './reset-member-second-factor.ts'
import { updateCompany } from './update-company.ts'
import { updateMember } from './update-member.ts'
import { updateProject } from './update-project.ts'
import { updateWorkspace } from './update-workspace.ts'
import { withdrawInvitation } from './withdraw-invitation.ts'

export const COMPANY_ROUTES = listRoutes('Company', {
  getUsage,
  getCompany,
  updateCompany,
  replaceAllowlist,
  replaceSignInRules,
  listWorkspaces,
  createWorkspace,
  updateWorkspace,
  listProjects,
  createProject,
  updateProject,
  listMembers,
  updateMember,
  removeMember,
  createMemberResetLink,
  resetMemberSecondFactor,
  listInvitations,
  createInvitation,
  withdrawInvitation,
})
