-- oldest program: 2
--
-- The ledger. One row an event, partitioned by the month of receipt, which the id carries; never by
-- the client's timestamp, which may be years off. Fixed-width columns stand first.

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
  -- Copies of what is filtered on; the truth is the canonical text below.
  actor_id      text collate "C",
  actor_email   text collate "C",
  resource_type text collate "C",
  resource_id   text collate "C",
  -- Canonical text, not jsonb: nothing is re-encoded between the request, the hash and an export.
  actor         text collate "C",
  resource      text collate "C",
  metadata      text collate "C",
  sealed        text collate "C" not null,
  salts         text collate "C" not null
) partition by range (id);

-- Every page is newest first within a workspace, so every index ends in (ts, id). What may be absent
-- has a partial index: an event without it costs nothing.
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

-- Makes the partition of a month when it is missing, and moves into it what the default partition
-- holds of that month: a partition cannot be made for a range whose rows lie in the default. The
-- unique index belongs to each partition, because one on the parent would have to hold the id.
create function ensure_event_partition(month timestamptz) returns boolean
language plpgsql as $$
declare
  starts  timestamptz := date_trunc('month', month, 'UTC');
  ends    timestamptz := date_trunc('month', starts + interval '32 days', 'UTC');
  name    text := 'event_' || to_char(starts at time zone 'UTC', 'YYYY_MM');
begin
  -- Several nodes keep the partitions; they take turns.
  perform pg_advisory_xact_lock(4207002);
  if to_regclass(name) is not null then
    return false;
  end if;
  execute format('create table %I (like event including defaults including constraints)', name);
  execute format('create unique index %I on %I (workspace_id, seq)', name || '__seq', name);
  -- Writers wait here, for as long as the move below takes.
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

create table event_default partition of event default;
create unique index event_default__seq on event_default (workspace_id, seq);

select ensure_event_partition(now() + n * interval '1 month') from generate_series(0, 3) as n;

-- An idempotency key, for the life of its event, archived or not. A digest of 128 bits as uuid:
-- fixed width, compared as bytes. A row and its index entry take about 130 bytes.
create table idempotency_key (
  workspace_id uuid not null,
  key_digest   uuid not null,
  event_id     uuid not null,
  body_check   bigint not null,
  primary key (workspace_id, key_digest)
);

-- Locks heads one by one in the given order. A function, because it is one round trip, and because
-- each of its statements names one workspace, which is what a sharded database can lock.
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

-- The serving role adds events and reads them; it can neither change nor remove one.
grant select, insert on event, idempotency_key to annals_serving;
grant select, update, delete on event to annals_keeper;
