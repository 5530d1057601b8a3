import type { ColumnType, Generated } from 'kysely'

/** The tables as Kysely sees them. `server/schema.sql` is the same from the database's side. */
export type Tables = {
  company: CompanyTable
  workspace: WorkspaceTable
  project: ProjectTable
  app_user: AppUserTable
  user_workspace: UserWorkspaceTable
  api_key: ApiKeyTable
  api_key_use: ApiKeyUseTable
  chain_head: ChainHeadTable
}

/** Set by the database, never changed. */
type CreatedAt = ColumnType<Date, never, never>

type CompanyTable = {
  id: string
  name: string
  plan: string
  allowlist: string[]
  allowlist_for_all_calls: Generated<boolean>
  created_at: CreatedAt
}

type WorkspaceTable = {
  id: string
  company_id: string
  name: string
  kind: string
  created_at: CreatedAt
}

type ProjectTable = {
  workspace_id: string
  id: string
  name: string
  created_at: CreatedAt
}

type AppUserTable = {
  id: string
  company_id: string
  email: string
  password_hash: string
  role: string
  created_at: CreatedAt
}

type UserWorkspaceTable = {
  user_id: string
  workspace_id: string
}

type ApiKeyTable = {
  id: string
  company_id: string
  workspace_id: string | null
  kid: string
  secret_hash: Buffer
  scope: string
  name: string
  created_at: CreatedAt
  expires_at: Date | null
  /** Set when a rotation replaced the key: it works until its grace time ends. */
  grace_until: Date | null
  revoked_at: Date | null
}

type ApiKeyUseTable = {
  key_id: string
  used_at: Date
  used_ip: string
  used_endpoint: string
  day: string
  calls: number
  failures: number
}

type ChainHeadTable = {
  workspace_id: string
  seq: number
  hash: string
  last_id: string | null
}
