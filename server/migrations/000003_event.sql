-- oldest program: 3
--
-- The ledger: events, the heads of their chains, and idempotency keys.

-- Created together with its workspace. If writers created it on demand, two of them could fork the chain.
create table chain_head (
  workspace_id uuid primary key,
  seq          bigint not null check (seq >= 0),
  hash         text collate "C" not null check (length(hash) = 64),
  last_id      uuid,
  check ((seq = 0) = (last_id is null))
);

-- Partitioned by the month of receipt, which the id contains. The client's timestamp can be years off.
-- Columns of fixed width come first.
create table event (
  seq           bigint not null,
  ts            timestamptz not null,
  received_at   timestamptz not null,
  id            uuid not null,
  workspace_id  uuid not null,
  company_id    uuid not null,
  project_id    uuid,
  trace_id      uuid,
  hash          bytea not null,
  prev_hash     bytea not null,
  category      text collate "C" not null,
  action        text collate "C" not null,
  -- Copies for filters. The chain covers the canonical text below.
  actor_id      text collate "C",
  actor_email   text collate "C",
  resource_type text collate "C",
  resource_id   text collate "C",
  -- Canonical text instead of jsonb, so that nothing is encoded again between request, hash and export.
  actor         text collate "C",
  resource      text collate "C",
  metadata      text collate "C",
  sealed        text collate "C" not null,
  salts         text collate "C" not null
) partition by range (id);

-- Every page lists a workspace's newest events first, so every index ends in (ts, id). Optional columns have
-- partial indexes, which cost nothing for events without a value.
create index event__time on event (workspace_id, ts, id);
create index event__category on event (workspace_id, category, ts, id);
create index event__action on event (workspace_id, action, ts, id);
create index event__project on event (workspace_id, project_id, ts, id) where project_id is not null;
create index event__actor_id on event (workspace_id, actor_id, ts, id) where actor_id is not null;
create index event__actor_email on event (workspace_id, actor_email, ts, id) where actor_email is not null;
create index event__resource_type on event (workspace_id, resource_type, ts, id) where resource_type is not null;
create index event__resource_id on event (workspace_id, resource_id, ts, id) where resource_id is not null;

-- The lowest UUIDv7 of an instant.
create function event_id_floor(at timestamptz) returns uuid
language sql immutable parallel safe as $$
  select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- Creates the partition of a month if it doesn't exist, and moves the month's rows into it from the default
-- partition: PostgreSQL refuses a partition for a range that has rows in the default one. Each partition has
-- its own unique index, because a unique index on the parent would have to include the id.
create function ensure_event_partition(month timestamptz) returns boolean
language plpgsql as $$
declare
  starts  timestamptz := date_trunc('month', month, 'UTC');
  ends    timestamptz := date_trunc('month', starts + interval '32 days', 'UTC');
  name    text := 'event_' || to_char(starts at time zone 'UTC', 'YYYY_MM');
begin
  -- Several nodes maintain the partitions, one at a time.
  perform pg_advisory_xact_lock(4207002);
  if to_regclass(name) is not null then
    return false;
  end if;
  execute format('create table %I (like event including defaults including constraints)', name);
  execute format('create unique index %I on %I (workspace_id, seq)', name || '__seq', name);
  -- Writers wait from here until the rows are moved.
  lock table event_default in access exclusive mode;
  execute format(
    'with moved as (delete from event_default where id >= $1 and id < $2 returning *)
     insert into %I select * from moved', name)
    using event_id_floor(starts), event_id_floor(ends);
  execute format(
    'alter table event attach partition %I for values from (%L) to (%L)',
    name, event_id_floor(starts), event_id_floor(ends));
  return true;
end
$$;

-- Drops a partition if it is empty. Returns whether it did.
create function drop_event_partition_if_empty(partition regclass) returns boolean
language plpgsql as $$
declare
  is_empty boolean;
begin
  perform pg_advisory_xact_lock(4207002);
  -- The locks prevent new rows between the check and the drop. The parent comes first, in the order of every
  -- query. Queries that arrive meanwhile wait behind this statement, so it doesn't wait long for its locks.
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

create table event_default partition of event default;
create unique index event_default__seq on event_default (workspace_id, seq);

select ensure_event_partition(now() + n * interval '1 month') from generate_series(0, 3) as n;

-- An idempotency key is kept as long as its event, archived or not. Its digest of 128 bits is a uuid, which
-- has a fixed width. A row takes about 130 bytes, including its index entry.
create table idempotency_key (
  workspace_id uuid not null,
  key_digest   uuid not null,
  event_id     uuid not null,
  body_check   bigint not null,
  primary key (workspace_id, key_digest)
);

-- Locks heads one by one in the given order. A function takes one round trip, and each of its statements
-- names one workspace, so it also works on a sharded database.
create function lock_chain_heads(workspaces uuid[])
returns table (workspace_id uuid, seq bigint, hash text, last_id uuid)
language plpgsql as $$
declare
  wanted uuid;
begin
  foreach wanted in array workspaces loop
    return query
      select h.workspace_id, h.seq, h.hash, h.last_id
        from chain_head h
       where h.workspace_id = wanted
         for update;
  end loop;
end
$$;

grant select, insert, update on chain_head to annals_serving;
grant select on chain_head to annals_keeper;
-- The serving role can add and read events. It can neither change nor delete them.
grant select, insert on event, idempotency_key to annals_serving;
grant select, update, delete on event to annals_keeper;
