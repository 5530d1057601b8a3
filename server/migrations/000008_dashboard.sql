-- oldest program: 8
--
-- What members save in the dashboard, and the verification runs that they start there.

create table explorer_view (
  company_id   uuid not null references company (id),
  id           uuid not null,
  -- Null means all workspaces of the company.
  workspace_id uuid,
  -- Null if the owner is no longer a member. Shared views stay.
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
  -- A body of POST /dashboard/exports.
  body         jsonb not null,
  created_at   timestamptz not null,
  updated_at   timestamptz not null,
  primary key (company_id, id)
);
create index export_template__owner_id on export_template (owner_id);

-- A verification of one chain.
create table verify_run (
  company_id   uuid not null references company (id),
  id           uuid not null,
  workspace_id uuid not null,
  status       text not null check (status in ('RUNNING', 'HOLDS', 'BROKEN', 'FAILED', 'CANCELED')),
  checked      bigint not null,
  total        bigint not null,
  -- A sentence for people, and the first bad event, if there is one.
  verdict      text,
  bad_seq      bigint,
  bad_event_id uuid,
  created_by   uuid,
  created_at   timestamptz not null,
  -- The node that works on the run updates this regularly. If it stops, another node can take over.
  beat_at      timestamptz not null,
  finished_at  timestamptz,
  primary key (company_id, id)
);
create index verify_run__created on verify_run (company_id, created_at);
create unique index verify_run__running on verify_run (company_id, workspace_id) where status = 'RUNNING';

grant select, insert, update, delete on explorer_view, export_template, verify_run to annals_serving;
