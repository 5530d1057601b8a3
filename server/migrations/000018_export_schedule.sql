-- oldest program: 15
--
-- Names of export jobs, and exports on a schedule.

alter table export_job
  add column name           text,
  -- The schedule that created the job, and the end of its period. Null if a member or a key created it.
  add column template_id    uuid,
  add column cadence        text check (cadence in ('DAILY', 'WEEKLY', 'MONTHLY')),
  add column period_end     timestamptz,
  -- When a worker writes the file. A worker that does so moves it ahead, as its lease.
  add column attempt_due_at timestamptz,
  add column attempt_count  integer not null default 0,
  -- How many objects of the file the storage can have, and when all of them were there.
  add column parts_max      integer not null default 0,
  add column stored_at      timestamptz;
create unique index export_job__schedule on export_job (company_id, template_id, cadence, period_end)
  where cadence is not null;
create index export_job__attempt_due_at on export_job (attempt_due_at)
  where attempt_due_at is not null;
create index export_job__stored on export_job (finished_at) where parts_max > 0;

-- A template that is exported regularly. It has a copy of the template's settings, which the service
-- checked when it saved them.
create table export_schedule (
  company_id  uuid not null,
  template_id uuid not null,
  cadence     text not null check (cadence in ('DAILY', 'WEEKLY', 'MONTHLY')),
  name        text not null,
  format      text not null check (format in ('JSONL', 'CSV')),
  filters     jsonb not null,
  row_limit   bigint check (row_limit >= 1),
  -- The end of the next period, and when to export it.
  period_end  timestamptz not null,
  due_at      timestamptz not null,
  -- Why the last period could not be exported yet.
  problem     text,
  created_at  timestamptz not null,
  primary key (company_id, template_id),
  foreign key (company_id, template_id) references export_template (company_id, id) on delete cascade
);
create index export_schedule__due_at on export_schedule (due_at);

grant select, insert, update, delete on export_schedule to annals_serving;
