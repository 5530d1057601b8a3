-- oldest program: 8
--
-- What the service has learned about the events of each workspace: their types, and the metadata keys of each
-- type. A worker learns from the chains after the events are stored, and the archiver learns from what the
-- worker hasn't seen yet before it deletes it.

-- How far the events of a workspace are counted: above floor_seq, up to and including seen_seq. Each change to
-- the other two tables also moves seen_seq, in the same transaction.
create table event_type_watermark (
  workspace_id uuid primary key,
  floor_seq    bigint not null,
  seen_seq     bigint not null,
  -- The head of the chain when this table was created. A type with an event up to here isn't new.
  baseline_seq bigint not null default 0,
  -- Whether there were events of more types than are listed.
  is_truncated boolean not null default false,
  advanced_at  timestamptz not null,
  check (floor_seq <= seen_seq)
) with (fillfactor = 50);

-- Each starts right before the oldest event in the table. Other chains get their row after their first event.
insert into event_type_watermark (workspace_id, floor_seq, seen_seq, baseline_seq, advanced_at)
select workspace_id, oldest.seq - 1, oldest.seq - 1, h.seq, now()
  from chain_head h
 cross join lateral (
   select coalesce(min(e.seq), h.seq + 1) as seq from event e where e.workspace_id = h.workspace_id) as oldest
 where h.seq > 0;

create table event_type (
  workspace_id  uuid not null,
  -- Counts up from 1, without gaps. It is short, unlike a category and an action.
  type_no       integer not null check (type_no > 0),
  category      text collate "C" not null,
  action        text collate "C" not null,
  events        bigint not null check (events > 0),
  first_seq     bigint not null,
  first_seen_at timestamptz not null,
  last_seq      bigint not null,
  last_seen_at  timestamptz not null,
  key_count     integer not null,
  -- Whether there were more or longer keys than are listed.
  is_truncated  boolean not null,
  -- When the shape last changed. Null if it never did.
  drifted_at    timestamptz,
  primary key (workspace_id, type_no),
  unique (workspace_id, category, action)
) with (fillfactor = 50);

-- One row per key and JSON type.
create table event_type_key (
  workspace_id   uuid not null,
  type_no        integer not null,
  -- The key, or the outer and the inner key with a comma between them, as JSON strings.
  path           text collate "C" not null,
  json_type      text collate "C" not null,
  events         bigint not null check (events > 0),
  first_seq      bigint not null,
  first_seen_at  timestamptz not null,
  first_event_id uuid not null,
  last_seen_at   timestamptz not null,
  is_drift       boolean not null,
  primary key (workspace_id, type_no, path, json_type)
) with (fillfactor = 50);

grant select, insert, update on event_type_watermark, event_type, event_type_key
  to annals_serving, annals_keeper;
