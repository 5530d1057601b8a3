-- oldest program: 15
--
-- Sign-in with OpenID Connect.

-- Null for members who joined with OpenID Connect and have not set a password. No password matches it.
alter table app_user alter column password_hash drop not null;

-- The account of a member at an identity provider. The provider names it by its subject, which never changes.
create table user_identity (
  user_id            uuid not null references app_user (id) on delete cascade,
  issuer             text collate "C" not null check (length(issuer) <= 500),
  subject            text collate "C" not null check (length(subject) between 1 and 255),
  linked_at          timestamptz not null,
  used_at            timestamptz not null,
  -- The role that groups granted at the last sign-in. Null: groups granted none.
  group_role         text check (group_role in ('OWNER', 'ADMIN', 'ANALYST', 'VIEWER')),
  group_workspaces   uuid[] not null default '{}',
  -- The role that the member has without groups. Null: the member joined by a group, and has none.
  own_role           text check (own_role in ('OWNER', 'ADMIN', 'ANALYST', 'VIEWER')),
  own_workspaces     uuid[] not null default '{}',
  primary key (user_id, issuer),
  unique (issuer, subject)
);

-- Sign-ins that returned from the identity provider. Each can be used once.
create table used_sign_in (
  state_hash bytea primary key check (length(state_hash) = 32),
  expires_at timestamptz not null
);
create index used_sign_in__expires_at on used_sign_in (expires_at);

-- What the groups of the identity provider grant, set by the operator.
create table group_mapping (
  company_id    uuid not null references company (id),
  group_name    text collate "C" not null check (length(group_name) between 1 and 200),
  role          text not null check (role in ('OWNER', 'ADMIN', 'ANALYST', 'VIEWER')),
  workspace_ids uuid[] not null default '{}',
  created_at    timestamptz not null,
  primary key (company_id, group_name)
);
create index group_mapping__group_name on group_mapping (group_name);

grant select, insert, update, delete on user_identity to annals_serving;
grant select, insert, delete on used_sign_in to annals_serving;
grant select, insert, update, delete on group_mapping to annals_serving;
