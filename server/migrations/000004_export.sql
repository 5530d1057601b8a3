-- oldest program: 2
--
-- The archive's catalogue, and export jobs.

-- Which run of a chain lies in which file. The runs of a workspace follow each other without a gap
-- from its first event on; what is above the last one is in the table event. A row comes into being
-- after its file was read back and every hash recomputed, and before anything is removed.
create table segment (
  workspace_id    uuid not null,
  first_seq       bigint not null,
  last_seq        bigint not null,
  object_key      text not null,
  bytes           bigint not null,
  sha256          bytea not null,
  first_prev_hash bytea not null,
  last_hash       bytea not null,
  last_id         uuid not null,
  min_ts          timestamptz not null,
  max_ts          timestamptz not null,
  min_received_at timestamptz not null,
  max_received_at timestamptz not null,
  created_at      timestamptz not null,
  primary key (workspace_id, first_seq),
  unique (workspace_id, last_seq),
  check (first_seq >= 1 and last_seq >= first_seq)
);
grant select on segment to annals_serving;
grant select, insert on segment to annals_keeper;

-- Drops a month's partition when nothing is left in it. True when it did.
create function drop_event_partition_if_empty(partition regclass) returns boolean
language plpgsql as $$
declare
  is_empty boolean;
begin
  perform pg_advisory_xact_lock(4207002);
  -- Nobody can add a row between the look and the end. The parent first, as every query does; and who
  -- comes meanwhile waits for us, so we do not wait long for who was first.
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
$$;

-- The download is the run: a job holds what to read, and afterwards what was read.
create table export_job (
  company_id      uuid not null references company (id),
  id              uuid not null,
  -- Of the key that made it; null: the company's.
  workspace_id    uuid,
  source          text not null check (source in ('HOT', 'ARCHIVED', 'HOT_AND_ARCHIVED')),
  format          text not null check (format in ('JSONL', 'CSV')),
  filters         jsonb not null,
  -- The runs of chains it reads, fixed when it is made: [{ workspaceId, fromSeq, toSeq }].
  ranges          jsonb not null,
  row_limit       bigint not null check (row_limit >= 1),
  status          text not null
                  check (status in ('PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELED')),
  rows_exported   bigint not null default 0,
  is_truncated    boolean,
  sha256          bytea,
  bytes           bigint,
  error_code      text,
  failure_summary text,
  rerun_of        uuid,
  created_at      timestamptz not null,
  started_at      timestamptz,
  finished_at     timestamptz,
  expires_at      timestamptz not null,
  primary key (company_id, id)
);
create index export_job__created on export_job (company_id, created_at, id);
create index export_job__workspace on export_job (company_id, workspace_id, created_at, id);
create index export_job__open on export_job (expires_at) where status in ('PENDING', 'RUNNING');
grant select, insert, update on export_job to annals_serving;
