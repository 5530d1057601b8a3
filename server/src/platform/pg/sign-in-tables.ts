import type { Generated } from 'kysely'

export type UserSessionTable = {
  id: string
  user_id: string
  token_hash: Buffer
  created_at: Date
  seen_at: Date
  expires_at: Date
  address: string
  user_agent: string
}

export type OneTimeLinkTable = {
  id: string
  company_id: string
  kind: string
  token_hash: Buffer
  email: string
  role: string | null
  workspace_ids: Generated<string[]>
  user_id: string | null
  created_by: string | null
  created_at: Date
  expires_at: Date
}

export type SecondFactorTable = {
  user_id: string
  secret: Buffer
  created_at: Date
  confirmed_at: Date | null
  used_step: Generated<number>
  recovery_hashes: Generated<Buffer[]>
}

export type SignInChallengeTable = {
  token_hash: Buffer
  user_id: string
  attempts_left: number
  created_at: Date
  expires_at: Date
  issuer: string | null
  subject: string | null
  groups: string[] | null
}

export type UserIdentityTable = {
  user_id: string
  issuer: string
  subject: string
  linked_at: Date
  used_at: Date
  group_role: string | null
  group_workspaces: Generated<string[]>
  own_role: string | null
  own_workspaces: Generated<string[]>
}

export type UsedSignInTable = {
  state_hash: Buffer
  expires_at: Date
}

export type GroupMappingTable = {
  company_id: string
  group_name: string
  role: string
  workspace_ids: string[]
  created_at: Date
}
