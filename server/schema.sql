-- The schema after all migrations, printed from the catalogs for review; nothing runs this file.
-- Refresh it after a change of server/migrations: npm run generate

create table api_key (
  id uuid not null,
  company_id uuid not null,
  workspace_id uuid,
  kid text collate "C" not null,
  secret_hash bytea not null,
  scope text not null,
  name text not null,
  created_at timestamp with time zone default now() not null,
  expires_at timestamp with time zone,
  grace_until timestamp with time zone,
  revoked_at timestamp with time zone,
  permissions text[],
  replaced_at timestamp with time zone,
  constraint api_key_pkey PRIMARY KEY (id),
  constraint api_key_kid_key UNIQUE (kid),
  constraint api_key_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint api_key_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES workspace(id),
  constraint api_key_check CHECK (((scope = 'WORKSPACE'::text) = (workspace_id IS NOT NULL))),
  constraint api_key_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint api_key_permissions_check CHECK (((cardinality(permissions) > 0) AND (permissions <@ ARRAY['events:write'::text, 'events:read'::text, 'exports'::text, 'webhooks'::text, 'audit'::text]))),
  constraint api_key_scope_check CHECK ((scope = ANY (ARRAY['COMPANY'::text, 'WORKSPACE'::text]))),
  constraint api_key_secret_hash_check CHECK ((length(secret_hash) = 32))
);
CREATE INDEX api_key__company_id ON public.api_key USING btree (company_id);
CREATE INDEX api_key__expires_at ON public.api_key USING btree (expires_at) WHERE ((revoked_at IS NULL) AND (grace_until IS NULL));
CREATE INDEX api_key__grace_until ON public.api_key USING btree (grace_until) WHERE ((revoked_at IS NULL) AND (grace_until IS NOT NULL));
grant insert, select, update on api_key to annals_serving;

create table api_key_use (
  key_id uuid not null,
  used_at timestamp with time zone not null,
  used_ip text not null,
  used_endpoint text not null,
  day date not null,
  calls bigint not null,
  failures bigint not null,
  constraint api_key_use_pkey PRIMARY KEY (key_id),
  constraint api_key_use_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_key(id)
);
grant insert, select, update on api_key_use to annals_serving;

create table app_user (
  id uuid not null,
  company_id uuid not null,
  email text collate "C" not null,
  password_hash text,
  role text not null,
  created_at timestamp with time zone default now() not null,
  constraint app_user_pkey PRIMARY KEY (id),
  constraint app_user_email_key UNIQUE (email),
  constraint app_user_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint app_user_email_check CHECK ((email = lower(email))),
  constraint app_user_role_check CHECK ((role = ANY (ARRAY['OWNER'::text, 'ADMIN'::text, 'ANALYST'::text, 'VIEWER'::text])))
);
CREATE INDEX app_user__company_id ON public.app_user USING btree (company_id);
grant delete, insert, select, update on app_user to annals_serving;

create table archive_identity (
  is_only boolean default true not null,
  archive_id text not null,
  created_at timestamp with time zone not null,
  constraint archive_identity_pkey PRIMARY KEY (is_only),
  constraint archive_identity_is_only_check CHECK (is_only)
);
grant insert, select on archive_identity to annals_keeper;
grant select on archive_identity to annals_serving;

create table chain_head (
  workspace_id uuid not null,
  seq bigint not null,
  hash text collate "C" not null,
  last_id uuid,
  moved_group bigint default 0 not null,
  constraint chain_head_pkey PRIMARY KEY (workspace_id),
  constraint chain_head_check CHECK (((seq = 0) = (last_id IS NULL))),
  constraint chain_head_hash_check CHECK ((length(hash) = 64)),
  constraint chain_head_seq_check CHECK ((seq >= 0))
);
CREATE INDEX chain_head__moved ON public.chain_head USING btree (moved_group);
grant select on chain_head to annals_keeper;
grant insert, select, update on chain_head to annals_serving;

create table checkpoint (
  workspace_id uuid not null,
  tree_size bigint not null,
  size bigint,
  origin text collate "C",
  root bytea,
  note text collate "C",
  vkey text collate "C",
  signed_at timestamp with time zone,
  refusal text collate "C",
  constraint checkpoint_pkey PRIMARY KEY (workspace_id),
  constraint checkpoint_check CHECK ((num_nulls(size, origin, root, note, vkey, signed_at) = ANY (ARRAY[0, 6]))),
  constraint checkpoint_root_check CHECK ((octet_length(root) = 32)),
  constraint checkpoint_size_check CHECK ((size >= 0)),
  constraint checkpoint_tree_size_check CHECK ((tree_size >= 0))
) with (fillfactor=50);
grant insert, select, update on checkpoint to annals_serving;

create table checkpoint_day (
  workspace_id uuid not null,
  day date not null,
  size bigint not null,
  root bytea not null,
  note text collate "C" not null,
  vkey text collate "C" not null,
  signed_at timestamp with time zone not null,
  constraint checkpoint_day_pkey PRIMARY KEY (workspace_id, day),
  constraint checkpoint_day_root_check CHECK ((octet_length(root) = 32)),
  constraint checkpoint_day_size_check CHECK ((size >= 0))
);
grant delete, insert, select, update on checkpoint_day to annals_serving;

create table company (
  id uuid not null,
  name text not null,
  plan text not null,
  allowlist text[] not null,
  allowlist_for_all_calls boolean default false not null,
  created_at timestamp with time zone default now() not null,
  requires_second_factor boolean default false not null,
  allowlist_for_dashboard boolean default false not null,
  constraint company_pkey PRIMARY KEY (id),
  constraint company_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint company_plan_check CHECK ((plan = ANY (ARRAY['FREE'::text, 'STARTER'::text, 'PRO'::text, 'ENTERPRISE'::text])))
);
grant select on company to annals_keeper;
grant insert, select, update on company to annals_serving;

create table cosignature (
  workspace_id uuid not null,
  witness text collate "C" not null,
  size bigint not null,
  root bytea not null,
  line text collate "C" not null,
  constraint cosignature_pkey PRIMARY KEY (workspace_id, witness),
  constraint cosignature_line_check CHECK ((length(line) <= 1024)),
  constraint cosignature_root_check CHECK ((octet_length(root) = 32)),
  constraint cosignature_size_check CHECK ((size >= 0))
) with (fillfactor=50);
grant insert, select, update on cosignature to annals_serving;

create table event (
  seq bigint not null,
  ts timestamp with time zone not null,
  received_at timestamp with time zone not null,
  id uuid not null,
  workspace_id uuid not null,
  company_id uuid not null,
  project_id uuid,
  trace_id uuid,
  hash bytea not null,
  prev_hash bytea not null,
  category text collate "C" not null,
  action text collate "C" not null,
  actor_id text collate "C",
  actor_email text collate "C",
  resource_type text collate "C",
  resource_id text collate "C",
  actor text collate "C",
  resource text collate "C",
  metadata text collate "C",
  sealed text collate "C" not null,
  salts text collate "C" not null
) partition by range (id);
CREATE INDEX event__action ON ONLY public.event USING btree (workspace_id, action, ts, id);
CREATE INDEX event__actor_email ON ONLY public.event USING btree (workspace_id, actor_email, ts, id) WHERE (actor_email IS NOT NULL);
CREATE INDEX event__actor_id ON ONLY public.event USING btree (workspace_id, actor_id, ts, id) WHERE (actor_id IS NOT NULL);
CREATE INDEX event__category ON ONLY public.event USING btree (workspace_id, category, ts, id);
CREATE INDEX event__project ON ONLY public.event USING btree (workspace_id, project_id, ts, id) WHERE (project_id IS NOT NULL);
CREATE INDEX event__resource_id ON ONLY public.event USING btree (workspace_id, resource_id, ts, id) WHERE (resource_id IS NOT NULL);
CREATE INDEX event__resource_type ON ONLY public.event USING btree (workspace_id, resource_type, ts, id) WHERE (resource_type IS NOT NULL);
CREATE INDEX event__time ON ONLY public.event USING btree (workspace_id, ts, id);
grant delete, select, update on event to annals_keeper;
grant insert, select on event to annals_serving;
-- Its partitions: by range, and a default one.
-- Each: CREATE UNIQUE INDEX <partition>__seq ON public.<partition> USING btree (workspace_id, seq);

create table event_day (
  workspace_id uuid not null,
  day date not null,
  events bigint not null,
  bytes bigint not null,
  constraint event_day_pkey PRIMARY KEY (workspace_id, day)
) with (fillfactor=50);
grant delete, insert, select, update on event_day to annals_keeper;
grant delete, insert, select, update on event_day to annals_serving;

create table event_field (
  workspace_id uuid not null,
  field text collate "C" not null,
  value_count bigint not null,
  dropped_seq bigint not null,
  frequent_from bigint default 1 not null,
  constraint event_field_pkey PRIMARY KEY (workspace_id, field)
) with (fillfactor=50);
grant delete, insert, select, update on event_field to annals_keeper;
grant delete, insert, select, update on event_field to annals_serving;

create table event_rollup (
  workspace_id uuid not null,
  grain_s integer not null,
  bucket timestamp with time zone not null,
  category text collate "C" not null,
  action text collate "C" not null,
  events bigint not null,
  constraint event_rollup_pkey PRIMARY KEY (workspace_id, grain_s, bucket, category, action),
  constraint event_rollup_events_check CHECK ((events > 0))
) with (fillfactor=80);
grant delete, insert, select, update on event_rollup to annals_keeper;
grant delete, insert, select, update on event_rollup to annals_serving;

create table event_type (
  workspace_id uuid not null,
  type_no integer not null,
  category text collate "C" not null,
  action text collate "C" not null,
  events bigint not null,
  first_seq bigint not null,
  first_seen_at timestamp with time zone not null,
  last_seq bigint not null,
  last_seen_at timestamp with time zone not null,
  key_count integer not null,
  is_truncated boolean not null,
  drifted_at timestamp with time zone,
  constraint event_type_pkey PRIMARY KEY (workspace_id, type_no),
  constraint event_type_workspace_id_category_action_key UNIQUE (workspace_id, category, action),
  constraint event_type_events_check CHECK ((events > 0)),
  constraint event_type_type_no_check CHECK ((type_no > 0))
) with (fillfactor=50);
grant insert, select, update on event_type to annals_keeper;
grant insert, select, update on event_type to annals_serving;

create table event_type_key (
  workspace_id uuid not null,
  type_no integer not null,
  path text collate "C" not null,
  json_type text collate "C" not null,
  events bigint not null,
  first_seq bigint not null,
  first_seen_at timestamp with time zone not null,
  first_event_id uuid not null,
  last_seen_at timestamp with time zone not null,
  is_drift boolean not null,
  constraint event_type_key_pkey PRIMARY KEY (workspace_id, type_no, path, json_type),
  constraint event_type_key_events_check CHECK ((events > 0))
) with (fillfactor=50);
grant insert, select, update on event_type_key to annals_keeper;
grant insert, select, update on event_type_key to annals_serving;

create table event_type_watermark (
  workspace_id uuid not null,
  floor_seq bigint not null,
  seen_seq bigint not null,
  baseline_seq bigint default 0 not null,
  is_truncated boolean default false not null,
  advanced_at timestamp with time zone not null,
  constraint event_type_watermark_pkey PRIMARY KEY (workspace_id),
  constraint event_type_watermark_check CHECK ((floor_seq <= seen_seq))
) with (fillfactor=50);
grant insert, select, update on event_type_watermark to annals_keeper;
grant insert, select, update on event_type_watermark to annals_serving;

create table event_value (
  workspace_id uuid not null,
  field text collate "C" not null,
  value text collate "C" not null,
  events bigint not null,
  is_folded boolean generated always as ((value = lower(value))) stored not null,
  is_frequent boolean default false not null,
  constraint event_value_pkey PRIMARY KEY (workspace_id, field, value) INCLUDE (is_folded),
  constraint event_value_events_check CHECK ((events > 0))
) with (fillfactor=80);
CREATE INDEX event_value__frequent ON public.event_value USING btree (workspace_id, field) WHERE is_frequent;
grant delete, insert, select, update on event_value to annals_keeper;
grant delete, insert, select, update on event_value to annals_serving;

create table event_value_block (
  workspace_id uuid not null,
  field text collate "C" not null,
  block bigint generated always as identity not null,
  size integer not null,
  folded text collate "C" not null,
  items text[] collate "C" not null,
  constraint event_value_block_pkey PRIMARY KEY (workspace_id, field, block)
);
grant delete, insert, select on event_value_block to annals_keeper;
grant delete, insert, select on event_value_block to annals_serving;

create table explorer_view (
  company_id uuid not null,
  id uuid not null,
  workspace_id uuid,
  owner_id uuid,
  name text not null,
  visibility text not null,
  query jsonb not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint explorer_view_pkey PRIMARY KEY (company_id, id),
  constraint explorer_view_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint explorer_view_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint explorer_view_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
  constraint explorer_view_visibility_check CHECK ((visibility = ANY (ARRAY['PRIVATE'::text, 'WORKSPACE'::text])))
);
CREATE INDEX explorer_view__owner_id ON public.explorer_view USING btree (owner_id);
grant delete, insert, select, update on explorer_view to annals_serving;

create table export_job (
  company_id uuid not null,
  id uuid not null,
  workspace_id uuid,
  source text not null,
  format text not null,
  filters jsonb not null,
  ranges jsonb not null,
  row_limit bigint not null,
  status text not null,
  rows_exported bigint default 0 not null,
  is_truncated boolean,
  sha256 bytea,
  bytes bigint,
  error_code text,
  failure_summary text,
  rerun_of uuid,
  created_at timestamp with time zone not null,
  started_at timestamp with time zone,
  finished_at timestamp with time zone,
  expires_at timestamp with time zone not null,
  created_by uuid,
  last_attempt_at timestamp with time zone,
  last_attempt_code text,
  last_attempt_summary text,
  name text,
  template_id uuid,
  cadence text,
  period_end timestamp with time zone,
  attempt_due_at timestamp with time zone,
  attempt_count integer default 0 not null,
  parts_max integer default 0 not null,
  stored_at timestamp with time zone,
  constraint export_job_pkey PRIMARY KEY (company_id, id),
  constraint export_job_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint export_job_cadence_check CHECK ((cadence = ANY (ARRAY['DAILY'::text, 'WEEKLY'::text, 'MONTHLY'::text]))),
  constraint export_job_format_check CHECK ((format = ANY (ARRAY['JSONL'::text, 'CSV'::text]))),
  constraint export_job_row_limit_check CHECK ((row_limit >= 1)),
  constraint export_job_source_check CHECK ((source = ANY (ARRAY['HOT'::text, 'ARCHIVED'::text, 'HOT_AND_ARCHIVED'::text]))),
  constraint export_job_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text, 'SUCCEEDED'::text, 'FAILED'::text, 'CANCELED'::text])))
);
CREATE INDEX export_job__attempt_due_at ON public.export_job USING btree (attempt_due_at) WHERE (attempt_due_at IS NOT NULL);
CREATE INDEX export_job__created ON public.export_job USING btree (company_id, created_at, id);
CREATE INDEX export_job__finished ON public.export_job USING btree (finished_at) WHERE (finished_at IS NOT NULL);
CREATE INDEX export_job__open ON public.export_job USING btree (expires_at) WHERE (status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text]));
CREATE UNIQUE INDEX export_job__schedule ON public.export_job USING btree (company_id, template_id, cadence, period_end) WHERE (cadence IS NOT NULL);
CREATE INDEX export_job__status ON public.export_job USING btree (company_id, status, created_at, id);
CREATE INDEX export_job__stored ON public.export_job USING btree (finished_at) WHERE (parts_max > 0);
CREATE INDEX export_job__workspace ON public.export_job USING btree (company_id, workspace_id, created_at, id);
grant delete, insert, select, update on export_job to annals_serving;

create table export_schedule (
  company_id uuid not null,
  template_id uuid not null,
  cadence text not null,
  name text not null,
  format text not null,
  filters jsonb not null,
  row_limit bigint,
  period_end timestamp with time zone not null,
  due_at timestamp with time zone not null,
  problem text,
  created_at timestamp with time zone not null,
  constraint export_schedule_pkey PRIMARY KEY (company_id, template_id),
  constraint export_schedule_company_id_template_id_fkey FOREIGN KEY (company_id, template_id) REFERENCES export_template(company_id, id) ON DELETE CASCADE,
  constraint export_schedule_cadence_check CHECK ((cadence = ANY (ARRAY['DAILY'::text, 'WEEKLY'::text, 'MONTHLY'::text]))),
  constraint export_schedule_format_check CHECK ((format = ANY (ARRAY['JSONL'::text, 'CSV'::text]))),
  constraint export_schedule_row_limit_check CHECK ((row_limit >= 1))
);
CREATE INDEX export_schedule__due_at ON public.export_schedule USING btree (due_at);
grant delete, insert, select, update on export_schedule to annals_serving;

create table export_template (
  company_id uuid not null,
  id uuid not null,
  workspace_id uuid,
  owner_id uuid,
  name text not null,
  body jsonb not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint export_template_pkey PRIMARY KEY (company_id, id),
  constraint export_template_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint export_template_owner_id_fkey FOREIGN KEY (owner_id) REFERENCES app_user(id) ON DELETE SET NULL,
  constraint export_template_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200)))
);
CREATE INDEX export_template__owner_id ON public.export_template USING btree (owner_id);
grant delete, insert, select, update on export_template to annals_serving;

create table group_mapping (
  company_id uuid not null,
  group_name text collate "C" not null,
  role text not null,
  workspace_ids uuid[] default '{}'::uuid[] not null,
  created_at timestamp with time zone not null,
  constraint group_mapping_pkey PRIMARY KEY (company_id, group_name),
  constraint group_mapping_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint group_mapping_group_name_check CHECK (((length(group_name) >= 1) AND (length(group_name) <= 200))),
  constraint group_mapping_role_check CHECK ((role = ANY (ARRAY['OWNER'::text, 'ADMIN'::text, 'ANALYST'::text, 'VIEWER'::text])))
);
CREATE INDEX group_mapping__group_name ON public.group_mapping USING btree (group_name);
grant delete, insert, select, update on group_mapping to annals_serving;

create table idempotency_key (
  workspace_id uuid not null,
  key_digest uuid not null,
  event_id uuid not null,
  body_check bigint not null,
  constraint idempotency_key_pkey PRIMARY KEY (workspace_id, key_digest)
);
grant insert, select on idempotency_key to annals_serving;

create table ledger_move (
  is_only boolean default true not null,
  id uuid not null,
  state text collate "C" not null,
  other text not null,
  changed_at timestamp with time zone default now() not null,
  constraint ledger_move_pkey PRIMARY KEY (is_only),
  constraint ledger_move_is_only_check CHECK (is_only),
  constraint ledger_move_state_check CHECK ((state = ANY (ARRAY['LEAVING'::text, 'LEFT'::text, 'ARRIVING'::text])))
);
grant select on ledger_move to annals_keeper;
grant select on ledger_move to annals_serving;

create table node (
  id uuid not null,
  role text collate "C" not null,
  seen_at timestamp with time zone not null,
  constraint node_pkey PRIMARY KEY (id)
);
grant delete, insert, select, update on node to annals_serving;

create table notice (
  company_id uuid not null,
  id uuid not null,
  kind text collate "C" not null,
  workspace_id uuid,
  user_id uuid,
  message text not null,
  link text not null,
  created_at timestamp with time zone not null,
  mails_planned_at timestamp with time zone,
  constraint notice_pkey PRIMARY KEY (company_id, id),
  constraint notice_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint notice_message_check CHECK (((length(message) >= 1) AND (length(message) <= 1000)))
);
CREATE INDEX notice__created_at ON public.notice USING btree (created_at);
CREATE INDEX notice__unplanned ON public.notice USING btree (created_at) WHERE (mails_planned_at IS NULL);
grant delete, insert, select, update on notice to annals_serving;

create table notice_cause (
  company_id uuid not null,
  cause text collate "C" not null,
  kind text collate "C" not null,
  notice_id uuid not null,
  forget_at timestamp with time zone,
  constraint notice_cause_pkey PRIMARY KEY (company_id, cause),
  constraint notice_cause_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id)
);
CREATE INDEX notice_cause__forget_at ON public.notice_cause USING btree (forget_at) WHERE (forget_at IS NOT NULL);
CREATE INDEX notice_cause__lasting ON public.notice_cause USING btree (kind) WHERE (forget_at IS NULL);
grant delete, insert, select, update on notice_cause to annals_serving;

create table notice_mail (
  company_id uuid not null,
  notice_id uuid not null,
  user_id uuid not null,
  status text not null,
  attempt integer default 0 not null,
  due_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  constraint notice_mail_pkey PRIMARY KEY (company_id, notice_id, user_id),
  constraint notice_mail_company_id_notice_id_fkey FOREIGN KEY (company_id, notice_id) REFERENCES notice(company_id, id) ON DELETE CASCADE,
  constraint notice_mail_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE,
  constraint notice_mail_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'SENDING'::text, 'SENT'::text, 'FAILED'::text])))
);
CREATE INDEX notice_mail__company ON public.notice_mail USING btree (company_id, created_at);
CREATE INDEX notice_mail__due ON public.notice_mail USING btree (due_at) WHERE (status = 'PENDING'::text);
CREATE INDEX notice_mail__user_id ON public.notice_mail USING btree (user_id);
grant delete, insert, select, update on notice_mail to annals_serving;

create table notice_mail_off (
  user_id uuid not null,
  kind text collate "C" not null,
  constraint notice_mail_off_pkey PRIMARY KEY (user_id, kind),
  constraint notice_mail_off_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE
);
grant delete, insert, select, update on notice_mail_off to annals_serving;

create table notice_read (
  company_id uuid not null,
  notice_id uuid not null,
  user_id uuid not null,
  read_at timestamp with time zone not null,
  constraint notice_read_pkey PRIMARY KEY (company_id, notice_id, user_id),
  constraint notice_read_company_id_notice_id_fkey FOREIGN KEY (company_id, notice_id) REFERENCES notice(company_id, id) ON DELETE CASCADE,
  constraint notice_read_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE
);
CREATE INDEX notice_read__user_id ON public.notice_read USING btree (user_id);
grant delete, insert, select, update on notice_read to annals_serving;

create table one_time_link (
  id uuid not null,
  company_id uuid not null,
  kind text not null,
  token_hash bytea not null,
  email text collate "C" not null,
  role text,
  workspace_ids uuid[] default '{}'::uuid[] not null,
  user_id uuid,
  created_by uuid,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  constraint one_time_link_pkey PRIMARY KEY (id),
  constraint one_time_link_token_hash_key UNIQUE (token_hash),
  constraint one_time_link_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint one_time_link_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE,
  constraint one_time_link_check CHECK (((kind = 'INVITATION'::text) = (role IS NOT NULL))),
  constraint one_time_link_check1 CHECK (((kind = 'RESET'::text) = (user_id IS NOT NULL))),
  constraint one_time_link_email_check CHECK ((email = lower(email))),
  constraint one_time_link_kind_check CHECK ((kind = ANY (ARRAY['INVITATION'::text, 'RESET'::text]))),
  constraint one_time_link_role_check CHECK ((role = ANY (ARRAY['OWNER'::text, 'ADMIN'::text, 'ANALYST'::text, 'VIEWER'::text]))),
  constraint one_time_link_token_hash_check CHECK ((length(token_hash) = 32))
);
CREATE INDEX one_time_link__company_id ON public.one_time_link USING btree (company_id, created_at);
CREATE INDEX one_time_link__expires_at ON public.one_time_link USING btree (expires_at);
CREATE UNIQUE INDEX one_time_link__invitation ON public.one_time_link USING btree (company_id, email) WHERE (kind = 'INVITATION'::text);
grant delete, insert, select, update on one_time_link to annals_serving;

create table project (
  workspace_id uuid not null,
  id uuid not null,
  name text not null,
  created_at timestamp with time zone default now() not null,
  constraint project_pkey PRIMARY KEY (workspace_id, id),
  constraint project_workspace_id_name_key UNIQUE (workspace_id, name),
  constraint project_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES workspace(id),
  constraint project_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200)))
);
grant select on project to annals_keeper;
grant insert, select, update on project to annals_serving;

create table rollup_head (
  workspace_id uuid not null,
  floor_seq bigint not null,
  seen_seq bigint not null,
  day_seq bigint not null,
  advanced_at timestamp with time zone not null,
  constraint rollup_head_pkey PRIMARY KEY (workspace_id),
  constraint rollup_head_check CHECK ((floor_seq <= seen_seq))
) with (fillfactor=50);
grant delete, insert, select, update on rollup_head to annals_keeper;
grant delete, insert, select, update on rollup_head to annals_serving;

create table schema_migration (
  version integer not null,
  name text not null,
  checksum text not null,
  oldest_program integer not null,
  applied_at timestamp with time zone default now() not null,
  constraint schema_migration_pkey PRIMARY KEY (version)
);
grant select on schema_migration to annals_keeper;
grant select on schema_migration to annals_serving;

create table search_block (
  workspace_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  min_ts timestamp with time zone not null,
  max_ts timestamp with time zone not null,
  tokens bytea default '\x'::bytea not null,
  slice_events integer,
  slice_tokens bytea,
  seed bigint,
  facts bytea,
  postings bytea,
  constraint search_block_pkey PRIMARY KEY (workspace_id, first_seq),
  constraint search_block_check CHECK ((first_seq <= last_seq)),
  constraint search_block_check1 CHECK (((slice_events IS NULL) = (slice_tokens IS NULL))),
  constraint search_block_check2 CHECK ((((facts IS NULL) = (postings IS NULL)) AND ((facts IS NULL) = (seed IS NULL)))),
  constraint search_block_slice_events_check CHECK ((slice_events > 0)),
  constraint search_block_slice_tokens_check CHECK (((octet_length(slice_tokens) % 128) = 0)),
  constraint search_block_tokens_check CHECK (((octet_length(tokens) % 128) = 0))
);
grant insert, select on search_block to annals_keeper;
grant insert, select on search_block to annals_serving;

create table search_watermark (
  workspace_id uuid not null,
  floor_seq bigint not null,
  seen_seq bigint not null,
  advanced_at timestamp with time zone not null,
  constraint search_watermark_pkey PRIMARY KEY (workspace_id),
  constraint search_watermark_check CHECK ((floor_seq <= seen_seq))
) with (fillfactor=50);
grant insert, select, update on search_watermark to annals_keeper;
grant insert, select, update on search_watermark to annals_serving;

create table second_factor (
  user_id uuid not null,
  secret bytea not null,
  created_at timestamp with time zone not null,
  confirmed_at timestamp with time zone,
  used_step bigint default 0 not null,
  recovery_hashes bytea[] default '{}'::bytea[] not null,
  constraint second_factor_pkey PRIMARY KEY (user_id),
  constraint second_factor_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE,
  constraint second_factor_recovery_hashes_check CHECK ((cardinality(recovery_hashes) <= 10))
);
grant delete, insert, select, update on second_factor to annals_serving;

create table secret_key_identity (
  is_only boolean default true not null,
  fingerprint bytea not null,
  created_at timestamp with time zone not null,
  constraint secret_key_identity_pkey PRIMARY KEY (is_only),
  constraint secret_key_identity_is_only_check CHECK (is_only)
);
grant insert, select on secret_key_identity to annals_serving;

create table segment (
  workspace_id uuid not null,
  first_seq bigint not null,
  last_seq bigint not null,
  object_key text not null,
  bytes bigint not null,
  sha256 bytea not null,
  first_prev_hash bytea not null,
  last_hash bytea not null,
  last_id uuid not null,
  min_ts timestamp with time zone not null,
  max_ts timestamp with time zone not null,
  min_received_at timestamp with time zone not null,
  max_received_at timestamp with time zone not null,
  created_at timestamp with time zone not null,
  footer_sha256 bytea not null,
  constraint segment_pkey PRIMARY KEY (workspace_id, first_seq),
  constraint segment_workspace_id_last_seq_key UNIQUE (workspace_id, last_seq),
  constraint segment_check CHECK (((first_seq >= 1) AND (last_seq >= first_seq)))
);
CREATE INDEX segment__last_id ON public.segment USING btree (workspace_id, last_id);
grant insert, select on segment to annals_keeper;
grant select on segment to annals_serving;

create table segment_draft (
  workspace_id uuid not null,
  object_key text not null,
  created_at timestamp with time zone not null,
  constraint segment_draft_pkey PRIMARY KEY (workspace_id, object_key)
);
grant delete, insert, select on segment_draft to annals_keeper;

create table shared_rate (
  name uuid not null,
  tokens double precision not null,
  used double precision not null,
  wanted double precision not null,
  per_second double precision not null,
  capacity double precision not null,
  renewed_ms double precision not null,
  constraint shared_rate_pkey PRIMARY KEY (name)
);
grant delete, insert, select, update on shared_rate to annals_serving;

create table sign_in_challenge (
  token_hash bytea not null,
  user_id uuid not null,
  attempts_left smallint not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  issuer text collate "C",
  subject text collate "C",
  groups text[] collate "C",
  constraint sign_in_challenge_pkey PRIMARY KEY (token_hash),
  constraint sign_in_challenge_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE,
  constraint sign_in_challenge_attempts_left_check CHECK ((attempts_left > 0)),
  constraint sign_in_challenge_check CHECK ((num_nulls(issuer, subject, groups) = ANY (ARRAY[0, 3]))),
  constraint sign_in_challenge_groups_check CHECK ((cardinality(groups) <= 1000)),
  constraint sign_in_challenge_issuer_check CHECK ((length(issuer) <= 500)),
  constraint sign_in_challenge_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 255))),
  constraint sign_in_challenge_token_hash_check CHECK ((length(token_hash) = 32))
);
CREATE INDEX sign_in_challenge__expires_at ON public.sign_in_challenge USING btree (expires_at);
CREATE INDEX sign_in_challenge__user_id ON public.sign_in_challenge USING btree (user_id);
grant delete, insert, select, update on sign_in_challenge to annals_serving;

create table signer_lease (
  is_only boolean default true not null,
  holder uuid not null,
  expires_at timestamp with time zone not null,
  constraint signer_lease_pkey PRIMARY KEY (is_only),
  constraint signer_lease_is_only_check CHECK (is_only)
);
grant insert, select, update on signer_lease to annals_serving;

create table signing_key_list (
  is_only boolean default true not null,
  list text collate "C" not null,
  constraint signing_key_list_pkey PRIMARY KEY (is_only),
  constraint signing_key_list_is_only_check CHECK (is_only),
  constraint signing_key_list_list_check CHECK ((octet_length(list) <= 65536))
);
grant insert, select, update on signing_key_list to annals_serving;

create table tree_tile (
  workspace_id uuid not null,
  level smallint not null,
  number bigint not null,
  hashes bytea not null,
  constraint tree_tile_pkey PRIMARY KEY (workspace_id, level, number),
  constraint tree_tile_hashes_check CHECK ((((octet_length(hashes) >= 32) AND (octet_length(hashes) <= 8192)) AND ((octet_length(hashes) % 32) = 0))),
  constraint tree_tile_level_check CHECK (((level >= 0) AND (level <= 7))),
  constraint tree_tile_number_check CHECK ((number >= 0))
) with (autovacuum_vacuum_scale_factor=0.02);
grant insert, select, update on tree_tile to annals_serving;

create table used_sign_in (
  state_hash bytea not null,
  expires_at timestamp with time zone not null,
  constraint used_sign_in_pkey PRIMARY KEY (state_hash),
  constraint used_sign_in_state_hash_check CHECK ((length(state_hash) = 32))
);
CREATE INDEX used_sign_in__expires_at ON public.used_sign_in USING btree (expires_at);
grant delete, insert, select on used_sign_in to annals_serving;

create table user_identity (
  user_id uuid not null,
  issuer text collate "C" not null,
  subject text collate "C" not null,
  linked_at timestamp with time zone not null,
  used_at timestamp with time zone not null,
  group_role text,
  group_workspaces uuid[] default '{}'::uuid[] not null,
  own_role text,
  own_workspaces uuid[] default '{}'::uuid[] not null,
  constraint user_identity_pkey PRIMARY KEY (user_id, issuer),
  constraint user_identity_issuer_subject_key UNIQUE (issuer, subject),
  constraint user_identity_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE,
  constraint user_identity_group_role_check CHECK ((group_role = ANY (ARRAY['OWNER'::text, 'ADMIN'::text, 'ANALYST'::text, 'VIEWER'::text]))),
  constraint user_identity_issuer_check CHECK ((length(issuer) <= 500)),
  constraint user_identity_own_role_check CHECK ((own_role = ANY (ARRAY['OWNER'::text, 'ADMIN'::text, 'ANALYST'::text, 'VIEWER'::text]))),
  constraint user_identity_subject_check CHECK (((length(subject) >= 1) AND (length(subject) <= 255)))
);
grant delete, insert, select, update on user_identity to annals_serving;

create table user_session (
  id uuid not null,
  user_id uuid not null,
  token_hash bytea not null,
  created_at timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  address text not null,
  user_agent text not null,
  constraint user_session_pkey PRIMARY KEY (id),
  constraint user_session_token_hash_key UNIQUE (token_hash),
  constraint user_session_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE,
  constraint user_session_token_hash_check CHECK ((length(token_hash) = 32)),
  constraint user_session_user_agent_check CHECK ((length(user_agent) <= 512))
);
CREATE INDEX user_session__expires_at ON public.user_session USING btree (expires_at);
CREATE INDEX user_session__user_id ON public.user_session USING btree (user_id);
grant delete, insert, select, update on user_session to annals_serving;

create table user_workspace (
  user_id uuid not null,
  workspace_id uuid not null,
  constraint user_workspace_pkey PRIMARY KEY (user_id, workspace_id),
  constraint user_workspace_user_id_fkey FOREIGN KEY (user_id) REFERENCES app_user(id) ON DELETE CASCADE,
  constraint user_workspace_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES workspace(id)
);
grant delete, insert, select on user_workspace to annals_serving;

create table verify_run (
  company_id uuid not null,
  id uuid not null,
  workspace_id uuid not null,
  status text not null,
  checked bigint not null,
  total bigint not null,
  verdict text,
  bad_seq bigint,
  bad_event_id uuid,
  created_by uuid,
  created_at timestamp with time zone not null,
  beat_at timestamp with time zone not null,
  finished_at timestamp with time zone,
  is_scheduled boolean default false not null,
  from_at timestamp with time zone,
  to_at timestamp with time zone,
  first_seq bigint,
  last_seq bigint,
  checkpoint_size bigint,
  checkpoint_root bytea,
  checkpoint_note text collate "C",
  checkpoint_vkey text collate "C",
  checkpoint_signed_at timestamp with time zone,
  constraint verify_run_pkey PRIMARY KEY (workspace_id, id),
  constraint verify_run_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint verify_run_check CHECK ((num_nulls(from_at, to_at) = ANY (ARRAY[0, 2]))),
  constraint verify_run_check1 CHECK ((num_nulls(first_seq, last_seq) = ANY (ARRAY[0, 2]))),
  constraint verify_run_check2 CHECK ((num_nulls(checkpoint_size, checkpoint_root, checkpoint_note, checkpoint_vkey, checkpoint_signed_at) = ANY (ARRAY[0, 5]))),
  constraint verify_run_status_check CHECK ((status = ANY (ARRAY['RUNNING'::text, 'HOLDS'::text, 'BROKEN'::text, 'FAILED'::text, 'CANCELED'::text])))
);
CREATE INDEX verify_run__created ON public.verify_run USING btree (company_id, created_at);
CREATE INDEX verify_run__history ON public.verify_run USING btree (workspace_id, created_at);
CREATE INDEX verify_run__id ON public.verify_run USING btree (company_id, id);
CREATE UNIQUE INDEX verify_run__running ON public.verify_run USING btree (company_id, workspace_id) WHERE (status = 'RUNNING'::text);
grant delete, insert, select, update on verify_run to annals_serving;

create table verify_schedule (
  workspace_id uuid not null,
  due_at timestamp with time zone not null,
  constraint verify_schedule_pkey PRIMARY KEY (workspace_id)
);
CREATE INDEX verify_schedule__due ON public.verify_schedule USING btree (due_at);
grant insert, select, update on verify_schedule to annals_serving;

create table webhook (
  workspace_id uuid not null,
  id uuid not null,
  company_id uuid not null,
  project_id uuid,
  past_project_id uuid,
  project_since_seq bigint default 0 not null,
  url text not null,
  status text not null,
  disabled_reason text,
  events text[] not null,
  secret bytea not null,
  secret_label text,
  next_secret bytea,
  next_secret_at timestamp with time zone,
  seen_seq bigint not null,
  last_sequence bigint default 0 not null,
  open_count bigint default 0 not null,
  failure_count bigint default 0 not null,
  failing_since timestamp with time zone,
  resting_until timestamp with time zone,
  last_success_at timestamp with time zone,
  last_failure_at timestamp with time zone,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  deleted_at timestamp with time zone,
  name text,
  filter jsonb,
  past_filter jsonb,
  filtered_count bigint default 0 not null,
  headers bytea,
  header_names text[] default '{}'::text[] not null,
  enabled_group bigint default transaction_group() not null,
  has_open boolean generated always as ((open_count > 0)) stored not null,
  constraint webhook_pkey PRIMARY KEY (workspace_id, id),
  constraint webhook_workspace_id_fkey FOREIGN KEY (workspace_id) REFERENCES workspace(id),
  constraint webhook_check CHECK (((next_secret IS NULL) = (next_secret_at IS NULL))),
  constraint webhook_check1 CHECK (((headers IS NULL) = (header_names = '{}'::text[]))),
  constraint webhook_status_check CHECK ((status = ANY (ARRAY['ENABLED'::text, 'DISABLED'::text])))
) with (fillfactor=50);
CREATE INDEX webhook__company_id ON public.webhook USING btree (company_id);
CREATE INDEX webhook__enabled ON public.webhook USING btree (enabled_group);
CREATE INDEX webhook__id ON public.webhook USING btree (id);
CREATE INDEX webhook__open ON public.webhook USING btree (created_at) WHERE has_open;
grant select (seen_seq), select (status), select (workspace_id) on webhook to annals_keeper;
grant delete, insert, select, update on webhook to annals_serving;

create table webhook_delivery (
  workspace_id uuid not null,
  webhook_id uuid not null,
  id uuid not null,
  sequence bigint not null,
  event_seq bigint,
  event_id uuid not null,
  status text collate "C" not null,
  attempt integer not null,
  schedule_from integer default 0 not null,
  due_at timestamp with time zone not null,
  lease uuid,
  response_status integer,
  duration_ms integer,
  error_class text,
  failure_reason text,
  attempts jsonb default '[]'::jsonb not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  constraint webhook_delivery_pkey PRIMARY KEY (workspace_id, id),
  constraint webhook_delivery_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'SENDING'::text, 'SUCCEEDED'::text, 'FAILED'::text, 'RETRY_SCHEDULED'::text])))
);
CREATE INDEX webhook_delivery__due ON public.webhook_delivery USING btree (workspace_id, webhook_id, due_at) WHERE (status = ANY (ARRAY['PENDING'::text, 'SENDING'::text, 'RETRY_SCHEDULED'::text]));
CREATE UNIQUE INDEX webhook_delivery__event ON public.webhook_delivery USING btree (workspace_id, event_seq, webhook_id) WHERE (event_seq IS NOT NULL);
CREATE INDEX webhook_delivery__failed ON public.webhook_delivery USING btree (workspace_id, webhook_id, sequence) WHERE (status = 'FAILED'::text);
CREATE UNIQUE INDEX webhook_delivery__sequence ON public.webhook_delivery USING btree (workspace_id, webhook_id, sequence);
grant select (event_seq), select (status), select (workspace_id) on webhook_delivery to annals_keeper;
grant delete, insert, select, update on webhook_delivery to annals_serving;

create table workspace (
  id uuid not null,
  company_id uuid not null,
  name text not null,
  kind text not null,
  created_at timestamp with time zone default now() not null,
  constraint workspace_pkey PRIMARY KEY (id),
  constraint workspace_company_id_name_key UNIQUE (company_id, name),
  constraint workspace_company_id_fkey FOREIGN KEY (company_id) REFERENCES company(id),
  constraint workspace_kind_check CHECK ((kind = ANY (ARRAY['CUSTOMER'::text, 'SYSTEM'::text]))),
  constraint workspace_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200)))
);
CREATE UNIQUE INDEX workspace__one_system ON public.workspace USING btree (company_id) WHERE (kind = 'SYSTEM'::text);
grant select on workspace to annals_keeper;
grant insert, select, update on workspace to annals_serving;

CREATE OR REPLACE FUNCTION public.drop_event_partition_if_empty(partition regclass)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  is_empty boolean;
begin
  perform pg_advisory_xact_lock(4207002);
  -- The locks prevent new rows between the check and the drop. The parent comes first, in the order of every
  -- query. Queries that arrive meanwhile wait behind this statement, so it doesn't wait long for its locks.
  perform set_config('lock_timeout', '200ms', true);
  lock table event in access exclusive mode;
  execute format('lock table %s in access exclusive mode', partition);
  execute format('select not exists (select from %s)', partition) into is_empty;
  if is_empty then
    execute format('drop table %s', partition);
  end if;
  return is_empty;
exception when lock_not_available then
  return false;
end
$function$;

CREATE OR REPLACE FUNCTION public.ensure_event_partition(month timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
declare
  starts  timestamptz := date_trunc('month', month, 'UTC');
  ends    timestamptz := date_trunc('month', starts + interval '32 days', 'UTC');
  name    text := 'event_' || to_char(starts at time zone 'UTC', 'YYYY_MM');
begin
  -- Several nodes maintain the partitions, one at a time.
  perform pg_advisory_xact_lock(4207002);
  if to_regclass(name) is not null then
    return false;
  end if;
  execute format(
    'create table %I (like event including defaults including constraints including storage)', name);
  execute format('create unique index %I on %I (workspace_id, seq)', name || '__seq', name);
  -- Writers wait from here until the rows are moved.
  lock table event_default in access exclusive mode;
  execute format(
    'with moved as (delete from event_default where id >= $1 and id < $2 returning *)
     insert into %I select * from moved', name)
    using event_id_floor(starts), event_id_floor(ends);
  execute format(
    'alter table event attach partition %I for values from (%L) to (%L)',
    name, event_id_floor(starts), event_id_floor(ends));
  return true;
end
$function$;

CREATE OR REPLACE FUNCTION public.event_id_floor(at timestamp with time zone)
 RETURNS uuid
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
AS $function$
  select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$function$;

CREATE OR REPLACE FUNCTION public.lock_chain_heads(workspaces uuid[])
 RETURNS TABLE(workspace_id uuid, seq bigint, hash text, last_id uuid)
 LANGUAGE plpgsql
AS $function$
declare
  wanted uuid;
begin
  foreach wanted in array workspaces loop
    return query
      select h.workspace_id, h.seq, h.hash, h.last_id
        from chain_head h
       where h.workspace_id = wanted
         for update;
  end loop;
end
$function$;

CREATE OR REPLACE FUNCTION public.metadata_scalar(metadata text)
 RETURNS TABLE(value text)
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 10000 ROWS 100
AS $function$
  with recursive node as (
    select metadata::json as value, 'object' as type
    union all
    select child.value, json_typeof(child.value)
      from node
     cross join lateral (
       select member.value from json_each(node.value) as member where node.type = 'object'
       union all
       select item.value from json_array_elements(node.value) as item where node.type = 'array'
     ) as child
     where node.type in ('object', 'array')
  )
  select coalesce(node.value #>> '{}', 'null') from node where node.type not in ('object', 'array')
$function$;

CREATE OR REPLACE FUNCTION public.metadata_value(metadata text, wanted text)
 RETURNS TABLE(value text)
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE COST 10000 ROWS 10
AS $function$
  with recursive node as (
    select 0 as used, metadata::json as value, 'object' as type
    union all
    select child.used, child.value, json_typeof(child.value)
      from node
     cross join lateral (
       select node.used + length(member.key) + 1 as used, member.value
         from json_each(node.value) as member
        where node.type = 'object' and node.used <= length(wanted)
          and starts_with(substr(wanted, node.used + 1) || '.', member.key || '.')
       union all
       select node.used, item.value
         from json_array_elements(node.value) as item
        where node.type = 'array'
     ) as child
     where node.type in ('object', 'array')
  )
  select case when node.type not in ('object', 'array') then coalesce(node.value #>> '{}', 'null') end
    from node
   where node.used = length(wanted) + 1
$function$;

CREATE OR REPLACE FUNCTION public.refuse_moved_ledger()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  moved_to text;
begin
  -- The mover holds this lock exclusively while it takes the last step. PostgreSQL releases it when the mover's
  -- connection ends. Held in shared mode, it makes the last step wait for the end of this transaction.
  if not pg_try_advisory_xact_lock_shared(4207003) then
    raise exception 'the ledger is being moved to another database, so it can''t be changed for a few seconds'
      using errcode = 'read_only_sql_transaction';
  end if;
  -- After the lock, because the mover commits this before it releases the lock.
  select other into moved_to from ledger_move where state = 'LEFT';
  if found then
    raise exception 'the ledger was moved to %', moved_to using errcode = 'read_only_sql_transaction';
  end if;
  return null;
end
$function$;

CREATE OR REPLACE FUNCTION public.transaction_group()
 RETURNS bigint
 LANGUAGE sql
 STABLE PARALLEL RESTRICTED
AS $function$
  select pg_current_xact_id()::text::bigint >> 4
$function$;
