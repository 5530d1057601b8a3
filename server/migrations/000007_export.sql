-- oldest program: 7
--
-- Export jobs. A job describes what to read, and later what was read. The rows are exported during the
-- download, so nothing of a file is stored.

create table export_job (
  company_id      uuid not null references company (id),
  id              uuid not null,
  -- The workspace of the key that created the job. Null for a company key.
  workspace_id    uuid,
  source          text not null check (source in ('HOT', 'ARCHIVED', 'HOT_AND_ARCHIVED')),
  format          text not null check (format in ('JSONL', 'CSV')),
  filters         jsonb not null,
  -- The snapshot, fixed when the job is created: [{ workspaceId, fromSeq, toSeq }].
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
  -- The member who requested it in the dashboard. Null if a key did.
  created_by      uuid,
  primary key (company_id, id)
);
create index export_job__created on export_job (company_id, created_at, id);
create index export_job__workspace on export_job (company_id, workspace_id, created_at, id);
-- A company with many finished jobs finds its few open ones with this.
create index export_job__status on export_job (company_id, status, created_at, id);
create index export_job__open on export_job (expires_at) where status in ('PENDING', 'RUNNING');
-- Old jobs are deleted.
create index export_job__finished on export_job (finished_at) where finished_at is not null;

grant select, insert, update, delete on export_job to annals_serving;
