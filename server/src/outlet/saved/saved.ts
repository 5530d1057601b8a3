import type { CompanyId, Id, UserId, WorkspaceId } from '../../platform/id.ts'

/** What views and templates have in common. */
export type Saved<Kind extends string> = {
  id: Id<Kind>
  companyId: CompanyId
  /** Null means all workspaces that the member who uses it can see. */
  workspaceId: WorkspaceId | null
  /** Null if the owner is no longer a member. */
  ownerId: UserId | null
  ownerEmail: string | null
  name: string
  createdAt: Date
  updatedAt: Date
}
