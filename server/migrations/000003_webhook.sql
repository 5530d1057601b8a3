-- oldest program: 2
--
-- Webhooks and their deliveries. The chain is the outbox: seen_seq says up to which event of the
-- workspace a webhook has its deliveries, and moves in the statement that makes them, so each event
-- has one, whoever dies when.

create table webhook (
  workspace_id    uuid not null references workspace (id),
  id              uuid not null,
  company_id      uuid not null,
  project_id      uuid,
  -- What project_id was for events up to this number: a change counts for later ones only.
  past_project_id   uuid,
  project_since_seq bigint not null default 0,
  url             text not null,
  status          text not null check (status in ('ENABLED', 'DISABLED')),
  -- A sentence for people; null while it is enabled.
  disabled_reason text,
  events          text[] not null,
  -- Encrypted with the service's secret key.
  secret          bytea not null,
  secret_label    text,
  -- The secret it is being rotated to, and when that one becomes the only one.
  next_secret     bytea,
  next_secret_at  timestamptz,
  seen_seq        bigint not null,
  last_sequence   bigint not null default 0,
  -- Deliveries that are not final. Kept in the statements that change them.
  open_count      bigint not null default 0,
  failure_count   bigint not null default 0,
  -- The first failure since the last success.
  failing_since   timestamptz,
  -- After many straight failures nothing is sent before this.
  resting_until   timestamptz,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  -- Gone for everyone; its deliveries are removed some at a time, and then the row.
  deleted_at      timestamptz,
  primary key (workspace_id, id),
  check ((next_secret is null) = (next_secret_at is null))
) with (fillfactor = 50);
create index webhook__id on webhook (id);
create index webhook__company_id on webhook (company_id);

create table webhook_delivery (
  workspace_id    uuid not null,
  webhook_id      uuid not null,
  id              uuid not null,
  -- From 1 in each webhook, without gaps.
  sequence        bigint not null,
  -- Null for a test, which has no event.
  event_seq       bigint,
  event_id        uuid not null,
  status          text collate "C" not null
                  check (status in ('PENDING', 'SENDING', 'SUCCEEDED', 'FAILED', 'RETRY_SCHEDULED')),
  attempt         integer not null,
  -- The attempt after which the schedule of retries began: a redelivery starts it anew.
  schedule_from   integer not null default 0,
  -- When to send; while SENDING, when the lease ends.
  due_at          timestamptz not null,
  lease           uuid,
  response_status integer,
  duration_ms     integer,
  error_class     text,
  -- Why it failed, in a sentence.
  failure_reason  text,
  attempts        jsonb not null default '[]',
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  primary key (workspace_id, id)
);
create unique index webhook_delivery__sequence on webhook_delivery (workspace_id, webhook_id, sequence);
-- One delivery for each event and webhook, whatever happens.
create unique index webhook_delivery__event on webhook_delivery (workspace_id, event_seq, webhook_id)
  where event_seq is not null;
create index webhook_delivery__due on webhook_delivery (workspace_id, webhook_id, due_at)
  where status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED');
create index webhook_delivery__failed on webhook_delivery (workspace_id, webhook_id, sequence)
  where status = 'FAILED';

grant select, insert, update, delete on webhook, webhook_delivery to annals_serving;
-- The archiver leaves events that are still to be sent; it sees no more than that takes.
grant select (workspace_id, status, seen_seq) on webhook to annals_keeper;
grant select (workspace_id, status, event_seq) on webhook_delivery to annals_keeper;
