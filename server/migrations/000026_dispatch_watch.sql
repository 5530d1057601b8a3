-- oldest program: 21
--
-- Lets dispatchers find the webhooks with work by index, so that idle webhooks cost nothing. A group is 16
-- transactions in a row. Within a group, a head keeps its value, so that most updates of a busy head don't touch
-- the index.

-- In this order, because older programs lock them so when they look for work.
lock table webhook, chain_head in access exclusive mode;

create function transaction_group() returns bigint
language sql stable parallel restricted as $$
  select pg_current_xact_id()::text::bigint >> 4
$$;

-- The group of the transaction that last moved the head.
alter table chain_head add column moved_group bigint not null default 0;
create index chain_head__moved on chain_head (moved_group);

alter table webhook
  -- The group of the transaction that created or last enabled the webhook.
  add column enabled_group bigint not null default transaction_group(),
  add column has_open boolean not null generated always as (open_count > 0) stored;
create index webhook__enabled on webhook (enabled_group);
-- No other index has this order, so a search in it always uses this one.
create index webhook__open on webhook (created_at) where has_open;
