-- oldest program: 1
--
-- Who exists and who may. These tables stay small; on Citus they are reference tables, and what
-- grows with events is sharded by workspace_id.

-- Roles belong to the cluster, so another database of it may have made them already. Whoever
-- migrates without the right to make roles finds the two statements in docs/operations.md.
do $$
declare
  -- Whoever makes a role is a member of it, but from PostgreSQL 16 on may not yet act as it.
  needed text := case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end;
begin
  if not exists (select from pg_roles where rolname = 'annals_serving') then
    create role annals_serving nologin;
  end if;
  if not exists (select from pg_roles where rolname = 'annals_keeper') then
    create role annals_keeper nologin;
  end if;
  if not pg_has_role(current_user, 'annals_serving', needed) then
    execute format('grant annals_serving to %I', current_user);
  end if;
  if not pg_has_role(current_user, 'annals_keeper', needed) then
    execute format('grant annals_keeper to %I', current_user);
  end if;
end
$$;

grant select on schema_migration to annals_serving, annals_keeper;

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
  -- SYSTEM holds the dashboard's own audit; each company has exactly one.
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
  -- Lower case: one account an address, whatever the spelling.
  email         text collate "C" not null unique check (email = lower(email)),
  password_hash text not null,
  role          text not null check (role in ('OWNER', 'ADMIN', 'ANALYST', 'VIEWER')),
  created_at    timestamptz not null default now()
);
create index app_user__company_id on app_user (company_id);

-- Which workspaces an ANALYST or VIEWER is given; OWNER and ADMIN have the whole company.
create table user_workspace (
  user_id      uuid not null references app_user (id),
  workspace_id uuid not null references workspace (id),
  primary key (user_id, workspace_id)
);

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
  grace_until  timestamptz,
  revoked_at   timestamptz,
  check ((scope = 'WORKSPACE') = (workspace_id is not null))
);
create index api_key__company_id on api_key (company_id);

-- Apart from the key, because it is written again and again and the key is read on every call.
create table api_key_use (
  key_id        uuid primary key references api_key (id),
  used_at       timestamptz not null,
  used_ip       text not null,
  used_endpoint text not null,
  day           date not null,
  calls         bigint not null,
  failures      bigint not null
);

-- Made with its workspace, never later: two writers that both find none would fork the chain.
create table chain_head (
  workspace_id uuid primary key,
  seq          bigint not null check (seq >= 0),
  hash         text collate "C" not null check (length(hash) = 64),
  last_id      uuid,
  check ((seq = 0) = (last_id is null))
);

grant select, insert, update on
  company, workspace, project, app_user, api_key, api_key_use, chain_head to annals_serving;
grant select, insert, delete on user_workspace to annals_serving;
grant select on company, workspace, project, chain_head to annals_keeper;
