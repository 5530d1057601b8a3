-- oldest program: 21
--
-- Verifications of a period and by schedule, the checkpoint that each was compared with, and the last checkpoint of
-- each day.

alter table verify_run
  -- Started by the schedule instead of a member.
  add column is_scheduled         boolean not null default false,
  -- The period by time of receipt. Null for the whole chain.
  add column from_at              timestamptz,
  add column to_at                timestamptz,
  -- The verified events of the period or the chain. Null unless the run holds and there are some.
  add column first_seq            bigint,
  add column last_seq             bigint,
  -- The signed checkpoint whose tree has the verified events, if there was one.
  add column checkpoint_size      bigint,
  add column checkpoint_root      bytea,
  add column checkpoint_note      text collate "C",
  add column checkpoint_vkey      text collate "C",
  add column checkpoint_signed_at timestamptz,
  add check (num_nulls(from_at, to_at) in (0, 2)),
  add check (num_nulls(first_seq, last_seq) in (0, 2)),
  add check (num_nulls(checkpoint_size, checkpoint_root, checkpoint_note, checkpoint_vkey, checkpoint_signed_at) in (0, 5)),
  drop constraint verify_run_pkey,
  add primary key (workspace_id, id);
create index verify_run__id on verify_run (company_id, id);
create index verify_run__history on verify_run (workspace_id, created_at);

-- When each chain is verified next without being asked.
create table verify_schedule (
  workspace_id uuid primary key,
  due_at       timestamptz not null
);
create index verify_schedule__due on verify_schedule (due_at);

-- The last checkpoint of each day (UTC), except of the newest day, which is in `checkpoint`.
create table checkpoint_day (
  workspace_id uuid not null,
  day          date not null,
  size         bigint not null check (size >= 0),
  root         bytea not null check (octet_length(root) = 32),
  note         text collate "C" not null,
  vkey         text collate "C" not null,
  signed_at    timestamptz not null,
  primary key (workspace_id, day)
);

grant select, insert, update on verify_schedule to annals_serving;
grant select, insert, update, delete on checkpoint_day to annals_serving;
