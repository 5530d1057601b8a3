-- oldest program: 15
--
-- Second factors of members. An older program would sign members in with their password alone.

alter table company add column requires_second_factor boolean not null default false;

create table second_factor (
  user_id         uuid primary key references app_user (id) on delete cascade,
  -- What the member's authenticator app computes codes from, encrypted with the service's secret key.
  secret          bytea not null,
  created_at      timestamptz not null,
  -- Null until the member has entered a code. Until then, sign-in doesn't require one.
  confirmed_at    timestamptz,
  -- The time step of the last accepted code. Codes of this step and of earlier ones are refused.
  used_step       bigint not null default 0,
  -- The SHA-256 of each recovery code that hasn't been used.
  recovery_hashes bytea[] not null default '{}' check (cardinality(recovery_hashes) <= 10)
);

-- A sign-in with the right password that waits for the second factor. It is deleted when it is used.
create table sign_in_challenge (
  token_hash    bytea primary key check (length(token_hash) = 32),
  user_id       uuid not null references app_user (id) on delete cascade,
  attempts_left smallint not null check (attempts_left > 0),
  created_at    timestamptz not null,
  expires_at    timestamptz not null
);
create index sign_in_challenge__user_id on sign_in_challenge (user_id);
create index sign_in_challenge__expires_at on sign_in_challenge (expires_at);

grant select, insert, update, delete on second_factor, sign_in_challenge to annals_serving;
