-- oldest program: 2
--
-- Companies, their workspaces, members and keys. These tables stay small. Tables that grow with events
-- have workspace_id in every key, so that they can be sharded by it.

create table company (
  id                      uuid primary key,
  name                    text not null check (length(name) between 1 and 200),
  plan                    text not null check (plan in ('FREE', 'STARTER', 'PRO', 'ENTERPRISE')),
  allowlist               text[] not null,
  allowlist_for_all_calls boolean not null default false,
  created_at              timestamptz not null default now()
);

create table workspace (
  id         uuid primary key,
  company_id uuid not null references company (id),
  name       text not null check (length(name) between 1 and 200),
  -- SYSTEM contains the audit events of the dashboard. Each company has exactly one.
  kind       text not null check (kind in ('CUSTOMER', 'SYSTEM')),
  created_at timestamptz not null default now(),
  unique (company_id, name)
);
create unique index workspace__one_system on workspace (company_id) where kind = 'SYSTEM';

create table project (
  workspace_id uuid not null references workspace (id),
  id           uuid not null,
  name         text not null check (length(name) between 1 and 200),
  created_at   timestamptz not null default now(),
  primary key (workspace_id, id),
  unique (workspace_id, name)
);

create table app_user (
  id            uuid primary key,
  company_id    uuid not null references company (id),
  -- In lower case, so that each address has one account, however it is spelled.
  email         text collate "C" not null unique check (email = lower(email)),
  password_hash text not null,
  role          text not null check (role in ('OWNER', 'ADMIN', 'ANALYST', 'VIEWER')),
  created_at    timestamptz not null default now()
);
create index app_user__company_id on app_user (company_id);

-- The workspaces that an ANALYST or VIEWER can see. An OWNER or ADMIN can see all of the company's.
create table user_workspace (
  user_id      uuid not null references app_user (id) on delete cascade,
  workspace_id uuid not null references workspace (id),
  primary key (user_id, workspace_id)
);

create table user_session (
  id         uuid primary key,
  user_id    uuid not null references app_user (id) on delete cascade,
  -- The SHA-256 of the cookie's value, so that reading this table isn't enough to sign in.
  token_hash bytea not null unique check (length(token_hash) = 32),
  created_at timestamptz not null,
  seen_at    timestamptz not null,
  expires_at timestamptz not null,
  address    text not null,
  user_agent text not null check (length(user_agent) <= 512)
);
create index user_session__user_id on user_session (user_id);
create index user_session__expires_at on user_session (expires_at);

-- An invitation or a password reset. It is deleted when it is used.
create table one_time_link (
  id            uuid primary key,
  company_id    uuid not null references company (id),
  kind          text not null check (kind in ('INVITATION', 'RESET')),
  token_hash    bytea not null unique check (length(token_hash) = 32),
  email         text collate "C" not null check (email = lower(email)),
  -- Invitations only: the role and the workspaces of the future member.
  role          text check (role in ('OWNER', 'ADMIN', 'ANALYST', 'VIEWER')),
  workspace_ids uuid[] not null default '{}',
  -- Resets only: the member whose password is reset.
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

create table api_key (
  id           uuid primary key,
  company_id   uuid not null references company (id),
  workspace_id uuid references workspace (id),
  kid          text collate "C" not null unique,
  secret_hash  bytea not null check (length(secret_hash) = 32),
  scope        text not null check (scope in ('COMPANY', 'WORKSPACE')),
  name         text not null check (length(name) between 1 and 200),
  created_at   timestamptz not null default now(),
  expires_at   timestamptz,
  -- Set when a rotation replaced the key. The key works until then.
  grace_until  timestamptz,
  revoked_at   timestamptz,
  check ((scope = 'WORKSPACE') = (workspace_id is not null))
);
create index api_key__company_id on api_key (company_id);

-- In a table of its own, because it is updated constantly, while the key is read on every call.
create table api_key_use (
  key_id        uuid primary key references api_key (id),
  used_at       timestamptz not null,
  used_ip       text not null,
  used_endpoint text not null,
  day           date not null,
  calls         bigint not null,
  failures      bigint not null
);

grant select, insert, update on company, workspace, project, api_key, api_key_use to annals_serving;
grant select, insert, delete on user_workspace to annals_serving;
grant select, insert, update, delete on app_user, user_session, one_time_link to annals_serving;
grant select on company, workspace, project to annals_keeper;
