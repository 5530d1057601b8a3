-- oldest program: 2
--
-- The dashboard: who is signed in, one-time links, and what people keep there.

create table user_session (
  id         uuid primary key,
  user_id    uuid not null references app_user (id) on delete cascade,
  -- SHA-256 of what the cookie holds; whoever reads the table cannot sign in with it.
  token_hash bytea not null unique check (length(token_hash) = 32),
  created_at timestamptz not null,
  seen_at    timestamptz not null,
  expires_at timestamptz not null,
  address    text not null,
  user_agent text not null check (length(user_agent) <= 512)
);
create index user_session__user_id on user_session (user_id);
create index user_session__expires_at on user_session (expires_at);

-- An invitation or a reset of a password. It is deleted when it is used.
create table one_time_link (
  id            uuid primary key,
  company_id    uuid not null references company (id),
  kind          text not null check (kind in ('INVITATION', 'RESET')),
  token_hash    bytea not null unique check (length(token_hash) = 32),
  email         text collate "C" not null check (email = lower(email)),
  -- Of an invitation: what the member will be.
  role          text check (role in ('OWNER', 'ADMIN', 'ANALYST', 'VIEWER')),
  workspace_ids uuid[] not null default '{}',
  -- Of a reset: whose password.
  user_id       uuid references app_user (id) on delete cascade,
  created_by    uuid,
  created_at    timestamptz not null,
  expires_at    timestamptz not null,
  check ((kind = 'INVITATION') = (role is not null)),
  check ((kind = 'RESET') = (user_id is not null))
);
create index one_time_link__company_id on one_time_link (company_id, created_at);
create unique index one_time_link__invitation on one_time_link (company_id, email) where kind = 'INVITATION';
create index one_time_link__expires_at on one_time_link (expires_at);

alter table user_workspace
  drop constraint user_workspace_user_id_fkey,
  add foreign key (user_id) references app_user (id) on delete cascade;

create table explorer_view (
  company_id   uuid not null references company (id),
  id           uuid not null,
  -- Null: all of the company's.
  workspace_id uuid,
  -- Null when that member is gone: what was shared stays.
  owner_id     uuid references app_user (id) on delete set null,
  name         text not null check (length(name) between 1 and 200),
  visibility   text not null check (visibility in ('PRIVATE', 'WORKSPACE')),
  query        jsonb not null,
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  primary key (company_id, id)
);
create index explorer_view__owner_id on explorer_view (owner_id);

create table export_template (
  company_id   uuid not null references company (id),
  id           uuid not null,
  workspace_id uuid,
  owner_id     uuid references app_user (id) on delete set null,
  name         text not null check (length(name) between 1 and 200),
  -- What POST /dashboard/exports takes.
  body         jsonb not null,
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  primary key (company_id, id)
);
create index export_template__owner_id on export_template (owner_id);

-- The member who asked for it in the dashboard; null when it was a key.
alter table export_job add column created_by uuid;

-- A look through one chain, asked for in the dashboard.
create table verify_run (
  company_id   uuid not null references company (id),
  id           uuid not null,
  workspace_id uuid not null,
  status       text not null check (status in ('RUNNING', 'HOLDS', 'BROKEN', 'FAILED', 'CANCELED')),
  checked      bigint not null,
  total        bigint not null,
  -- A sentence, and the first bad event as far as there is one.
  verdict      text,
  bad_seq      bigint,
  bad_event_id uuid,
  created_by   uuid,
  created_at   timestamptz not null,
  -- The node that works on it says so again and again; another may take over when it stops.
  beat_at      timestamptz not null,
  finished_at  timestamptz,
  primary key (company_id, id)
);
create index verify_run__created on verify_run (company_id, created_at);
create unique index verify_run__running on verify_run (company_id, workspace_id) where status = 'RUNNING';

grant select, insert, update, delete on
  user_session, one_time_link, explorer_view, export_template, verify_run to annals_serving;
grant delete on app_user to annals_serving;
