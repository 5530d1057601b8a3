-- oldest program: 6
--
-- Webhooks and their deliveries. The chain is the outbox: a webhook has deliveries for the events up to and
-- including seen_seq. The statement that creates deliveries also advances seen_seq, so each event gets
-- exactly one, whatever crashes.

create table webhook (
  workspace_id    uuid not null references workspace (id),
  id              uuid not null,
  company_id      uuid not null,
  project_id      uuid,
  -- The project for events up to and including project_since_seq: a change applies to later events only.
  past_project_id   uuid,
  project_since_seq bigint not null default 0,
  url             text not null,
  status          text not null check (status in ('ENABLED', 'DISABLED')),
  -- A sentence for people. Null while the webhook is enabled.
  disabled_reason text,
  events          text[] not null,
  -- Encrypted with the service's secret key.
  secret          bytea not null,
  secret_label    text,
  -- During a rotation: the next secret, and when it becomes the only one.
  next_secret     bytea,
  next_secret_at  timestamptz,
  seen_seq        bigint not null,
  last_sequence   bigint not null default 0,
  -- The deliveries that are not final. Every statement that changes deliveries updates it.
  open_count      bigint not null default 0,
  failure_count   bigint not null default 0,
  -- The first failure since the last success.
  failing_since   timestamptz,
  -- After many failures in a row, nothing is sent before this time.
  resting_until   timestamptz,
  last_success_at timestamptz,
  last_failure_at timestamptz,
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  -- Set when the webhook is deleted. Nothing shows it anymore; a worker deletes its deliveries, then the row.
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
  -- Starts at 1 for each webhook, without gaps.
  sequence        bigint not null,
  -- Null for a test delivery, which has no event.
  event_seq       bigint,
  event_id        uuid not null,
  status          text collate "C" not null
                  check (status in ('PENDING', 'SENDING', 'SUCCEEDED', 'FAILED', 'RETRY_SCHEDULED')),
  attempt         integer not null,
  -- The attempt after which the retry schedule started. A redelivery starts it again.
  schedule_from   integer not null default 0,
  -- When to send. While SENDING, when the lease ends.
  due_at          timestamptz not null,
  lease           uuid,
  response_status integer,
  duration_ms     integer,
  error_class     text,
  -- A sentence for people.
  failure_reason  text,
  attempts        jsonb not null default '[]',
  created_at      timestamptz not null,
  updated_at      timestamptz not null,
  primary key (workspace_id, id)
);
create unique index webhook_delivery__sequence on webhook_delivery (workspace_id, webhook_id, sequence);
-- Guarantees at most one delivery for each event and webhook.
create unique index webhook_delivery__event on webhook_delivery (workspace_id, event_seq, webhook_id)
  where event_seq is not null;
create index webhook_delivery__due on webhook_delivery (workspace_id, webhook_id, due_at)
  where status in ('PENDING', 'SENDING', 'RETRY_SCHEDULED');
create index webhook_delivery__failed on webhook_delivery (workspace_id, webhook_id, sequence)
  where status = 'FAILED';

grant select, insert, update, delete on webhook, webhook_delivery to annals_serving;
-- The archiver keeps events that are still to be sent. It can read only the columns that this takes.
grant select (workspace_id, status, seen_seq) on webhook to annals_keeper;
grant select (workspace_id, status, event_seq) on webhook_delivery to annals_keeper;
