import type { ColumnType, Generated } from 'kysely'
import type {
  GroupMappingTable,
  OneTimeLinkTable,
  SecondFactorTable,
  SignInChallengeTable,
  UsedSignInTable,
  UserIdentityTable,
  UserSessionTable,
} from './sign-in-tables.ts'
import type {
  CheckpointDayTable,
  CheckpointTable,
  CosignatureTable,
  SignerLeaseTable,
  SigningKeyListTable,
  TreeTileTable,
  VerifyRunTable,
  VerifyScheduleTable,
} from './tree-tables.ts'

/** The tables as Kysely types. `server/schema.sql` has the same tables in SQL. */
export type Tables = {
  company: CompanyTable
  workspace: WorkspaceTable
  project: ProjectTable
  app_user: AppUserTable
  user_workspace: UserWorkspaceTable
  api_key: ApiKeyTable
  api_key_use: ApiKeyUseTable
  chain_head: ChainHeadTable
  webhook: WebhookTable
  webhook_delivery: WebhookDeliveryTable
  node: NodeTable
  shared_rate: SharedRateTable
  segment: SegmentTable
  segment_draft: SegmentDraftTable
  archive_identity: ArchiveIdentityTable
  secret_key_identity: SecretKeyIdentityTable
  export_job: ExportJobTable
  user_session: UserSessionTable
  one_time_link: OneTimeLinkTable
  second_factor: SecondFactorTable
  sign_in_challenge: SignInChallengeTable
  user_identity: UserIdentityTable
  used_sign_in: UsedSignInTable
  group_mapping: GroupMappingTable
  explorer_view: ExplorerViewTable
  export_template: ExportTemplateTable
  export_schedule: ExportScheduleTable
  verify_run: VerifyRunTable
  verify_schedule: VerifyScheduleTable
  notice: NoticeTable
  notice_cause: NoticeCauseTable
  notice_read: NoticeReadTable
  notice_mail: NoticeMailTable
  notice_mail_off: NoticeMailOffTable
  rollup_head: RollupHeadTable
  event_rollup: EventRollupTable
  event_value: EventValueTable
  event_value_block: EventValueBlockTable
  event_field: EventFieldTable
  event_day: EventDayTable
  event_type_watermark: EventTypeWatermarkTable
  event_type: EventTypeTable
  event_type_key: EventTypeKeyTable
  search_watermark: SearchWatermarkTable
  search_block: SearchBlockTable
  tree_tile: TreeTileTable
  checkpoint: CheckpointTable
  checkpoint_day: CheckpointDayTable
  cosignature: CosignatureTable
  signer_lease: SignerLeaseTable
  signing_key_list: SigningKeyListTable
}

/** Set by the database and never changed. */
type CreatedAt = ColumnType<Date, never, never>

type CompanyTable = {
  id: string
  name: string
  plan: string
  allowlist: string[]
  allowlist_for_all_calls: Generated<boolean>
  allowlist_for_dashboard: Generated<boolean>
  requires_second_factor: Generated<boolean>
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
  /** Null without a password. */
  password_hash: string | null
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
  /** Set when a rotation replaced the key. The key works until then. */
  grace_until: Date | null
  replaced_at: ColumnType<Date | null, never, Date>
  revoked_at: Date | null
  /** Null: everything that the scope allows. */
  permissions: string[] | null
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
  moved_group: Generated<number>
}

type SharedRateTable = {
  name: string
  tokens: number
  used: number
  wanted: number
  per_second: number
  capacity: number
  renewed_ms: number
}

type NodeTable = {
  id: string
  role: string
  seen_at: Date
}

type WebhookTable = {
  workspace_id: string
  id: string
  company_id: string
  project_id: string | null
  past_project_id: string | null
  project_since_seq: Generated<number>
  url: string
  status: string
  disabled_reason: string | null
  events: string[]
  secret: Buffer
  secret_label: string | null
  next_secret: Buffer | null
  next_secret_at: Date | null
  name: string | null
  /** JSON. */
  filter: ColumnType<Record<string, string[]> | null, string | null, string | null>
  past_filter: ColumnType<never, never, string | null>
  filtered_count: Generated<number>
  headers: Buffer | null
  header_names: Generated<string[]>
  seen_seq: number
  last_sequence: Generated<number>
  open_count: Generated<number>
  failure_count: Generated<number>
  failing_since: Date | null
  resting_until: Date | null
  last_success_at: Date | null
  last_failure_at: Date | null
  created_at: Date
  updated_at: Date
  deleted_at: Date | null
  enabled_group: Generated<number>
}

type WebhookDeliveryTable = {
  workspace_id: string
  webhook_id: string
  id: string
  sequence: number
  event_seq: number | null
  event_id: string
  status: string
  attempt: number
  schedule_from: Generated<number>
  due_at: Date
  lease: string | null
  response_status: number | null
  duration_ms: number | null
  error_class: string | null
  failure_reason: string | null
  /** JSON. */
  attempts: Generated<unknown>
  created_at: Date
  updated_at: Date
}

type SegmentTable = {
  workspace_id: string
  first_seq: number
  last_seq: number
  object_key: string
  bytes: number
  sha256: Buffer
  first_prev_hash: Buffer
  last_hash: Buffer
  last_id: string
  min_ts: Date
  max_ts: Date
  min_received_at: Date
  max_received_at: Date
  created_at: Date
  footer_sha256: Buffer
}

type SegmentDraftTable = {
  workspace_id: string
  object_key: string
  created_at: Date
}

type ArchiveIdentityTable = {
  is_only: Generated<boolean>
  archive_id: string
  created_at: Date
}

type SecretKeyIdentityTable = {
  is_only: Generated<boolean>
  fingerprint: Buffer
  created_at: Date
}

type ExportJobTable = {
  company_id: string
  id: string
  workspace_id: string | null
  name: string | null
  template_id: string | null
  cadence: string | null
  period_end: Date | null
  attempt_due_at: Date | null
  attempt_count: Generated<number>
  parts_max: Generated<number>
  stored_at: Date | null
  source: string
  format: string
  /** JSON. */
  filters: unknown
  /** JSON. */
  ranges: unknown
  row_limit: number
  status: string
  rows_exported: Generated<number>
  is_truncated: boolean | null
  sha256: Buffer | null
  bytes: number | null
  error_code: string | null
  failure_summary: string | null
  last_attempt_at: Date | null
  last_attempt_code: string | null
  last_attempt_summary: string | null
  rerun_of: string | null
  created_by: string | null
  created_at: Date
  started_at: Date | null
  finished_at: Date | null
  expires_at: Date
}

type ExportScheduleTable = {
  company_id: string
  template_id: string
  cadence: string
  name: string
  format: string
  /** JSON. */
  filters: unknown
  row_limit: number | null
  period_end: Date
  due_at: Date
  problem: string | null
  created_at: Date
}

type ExplorerViewTable = {
  company_id: string
  id: string
  workspace_id: string | null
  owner_id: string | null
  name: string
  visibility: string
  query: ColumnType<unknown, string, string>
  created_at: Date
  updated_at: Date
}

type ExportTemplateTable = {
  company_id: string
  id: string
  workspace_id: string | null
  owner_id: string | null
  name: string
  body: ColumnType<unknown, string, string>
  created_at: Date
  updated_at: Date
}

type NoticeTable = {
  company_id: string
  id: string
  kind: string
  workspace_id: string | null
  user_id: string | null
  message: string
  link: string
  created_at: Date
  mails_planned_at: Date | null
}

type NoticeCauseTable = {
  company_id: string
  cause: string
  kind: string
  notice_id: string
  forget_at: Date | null
}

type NoticeReadTable = {
  company_id: string
  notice_id: string
  user_id: string
  read_at: Date
}

type NoticeMailTable = {
  company_id: string
  notice_id: string
  user_id: string
  status: string
  attempt: Generated<number>
  due_at: Date
  created_at: Date
}

type NoticeMailOffTable = {
  user_id: string
  kind: string
}

type RollupHeadTable = {
  workspace_id: string
  floor_seq: number
  seen_seq: number
  day_seq: number
  advanced_at: Date
}

type EventRollupTable = {
  workspace_id: string
  grain_s: number
  bucket: Date
  category: string
  action: string
  events: number
}

type EventValueTable = {
  workspace_id: string
  field: string
  value: string
  events: number
}

type EventValueBlockTable = {
  workspace_id: string
  field: string
  block: Generated<number>
  size: number
  folded: string
  items: string[]
}

type EventFieldTable = {
  workspace_id: string
  field: string
  value_count: number
  dropped_seq: number
}

type EventDayTable = {
  workspace_id: string
  day: string
  events: number
  bytes: number
}

type EventTypeWatermarkTable = {
  workspace_id: string
  floor_seq: number
  seen_seq: number
  baseline_seq: Generated<number>
  is_truncated: Generated<boolean>
  advanced_at: Date
}

type EventTypeTable = {
  workspace_id: string
  type_no: number
  category: string
  action: string
  events: number
  first_seq: number
  first_seen_at: Date
  last_seq: number
  last_seen_at: Date
  key_count: number
  is_truncated: boolean
  drifted_at: Date | null
}

type EventTypeKeyTable = {
  workspace_id: string
  type_no: number
  path: string
  json_type: string
  events: number
  first_seq: number
  first_seen_at: Date
  first_event_id: string
  last_seen_at: Date
  is_drift: boolean
}

type SearchWatermarkTable = {
  workspace_id: string
  floor_seq: number
  seen_seq: number
  advanced_at: Date
}

type SearchBlockTable = {
  workspace_id: string
  first_seq: number
  last_seq: number
  min_ts: Date
  max_ts: Date
  tokens: Generated<Buffer>
  slice_events: number | null
  slice_tokens: Buffer | null
  seed: number | null
  facts: Buffer | null
  postings: Buffer | null
}
